// Work that follows each other, whatever streams it is given to: each piece waits for the one
// before it by an event. Within a capture the waits become dependencies of the graph's nodes.
#pragma once

#include <functional>
#include <vector>

#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

// Of streams that are captured together, or of streams that are not captured: an event of the one
// kind cannot be waited for by the other. One thread at a time.
class LaunchOrder {
 public:
  using Work = std::function<CuResult()>;

  // Behind all that was run before. What was started and left no event is never followed: from then
  // on nothing is run.
  CuResult run(const DriverApi& api, CuStream stream, const Work& work);
  // On the host, until all of it has ended. Not of captured streams.
  [[nodiscard]] CuResult wait(const DriverApi& api) const;
  // For another order, in which nothing is run any more.
  void join(LaunchOrder& other);
  // Nothing follows what was run so far.
  void forget(const DriverApi& api);

 private:
  [[nodiscard]] CuResult record(const DriverApi& api, CuEvent event, CuStream stream);

  std::vector<CuEvent> last_;  // all of them tell that it has ended
  CuResult lost_ = cu_success;
};

}  // namespace demarc::cuda
