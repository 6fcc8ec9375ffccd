// Ends the work of processes on the card, and those processes, beside the thread that serves: MPS
// may need many seconds for its answer, and until then the server answers all others.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "demarc/base/owned_file.hpp"
#include "demarc/base/result.hpp"

namespace demarc::serve {

// A process, by the number that MPS knows it by. Once it has ended, the number may be another's.
struct WorkTarget {
  pid_t process = 0;
  OwnedFile file;  // pidfd of the process

  [[nodiscard]] bool lives() const;
  void kill() const;  // SIGKILL; nothing, if it has ended
};

class WorkEnder {
 public:
  // Ends the work of all these, and says of each of them, in order, whether it has ended.
  using End = std::function<std::vector<Result<void>>(const std::vector<WorkTarget>& targets)>;
  // What is done once those of one job have been killed, in this thread, too.
  using Then = std::function<Result<void>()>;
  using Job = std::uint64_t;
  struct Done {
    Job job = 0;
    Result<void> result;  // the first error of its targets
    Result<void> after;   // what `then` returned
    std::vector<WorkTarget> targets = {};
    Then then = {};
  };

  explicit WorkEnder(End end);
  ~WorkEnder();  // waits for a call of `end` that runs
  WorkEnder(const WorkEnder&) = delete;
  WorkEnder& operator=(const WorkEnder&) = delete;

  // Jobs that wait for their turn are ended together. One without `then` is done when its work has
  // ended; the targets of the others are killed, all of them before any `then` is called.
  Job begin(std::vector<WorkTarget> targets, Then then = {});
  // Until it is called with false, jobs wait, so that all of them are ended together.
  void gather(bool on);
  // Readable as soon as take_done() has something.
  [[nodiscard]] int file() const { return woken_.get(); }
  [[nodiscard]] std::list<Done> take_done();

 private:
  void run();
  void end_together(std::list<Done>& jobs) const;
  void deliver(Done job);

  End end_;
  OwnedFile woken_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Done> waiting_, done_;
  Job last_ = 0;
  bool gathers_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace demarc::serve
