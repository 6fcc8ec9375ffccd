// The mask that each executable graph was built with: graphs keep it for good (see
// launch_hook.hpp).
#pragma once

#include <mutex>

#include "demarc/driver/stream_table.hpp"

namespace demarc::cuda {

class GraphMasks {
 public:
  // The mask that the launch of `graph` now under way is built with: the one remembered, or, at its
  // first launch, `wanted`, which is remembered. There is room for StreamTable::max_streams graphs
  // at a time. The mask of one more graph is unknown once masks have changed: then `known` is
  // false.
  struct Kept {
    HardwareMask mask;
    bool known = true;
  };
  [[nodiscard]] Kept at_launch(const void* graph, const HardwareMask& wanted);
  void forget(const void* graph) { graphs_.erase(graph); }

 private:
  StreamTable graphs_;
  std::mutex crowded_mutex_;
  bool crowded_ = false;        // some graph found no room
  bool changed_since_ = false;  // and another mask was wanted since
  HardwareMask crowded_mask_;   // wanted when that happened first
};

}  // namespace demarc::cuda
