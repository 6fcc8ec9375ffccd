// Whether a command was at work during a visit, from how many kernels it has launched.
#pragma once

#include <cstdint>

namespace demarc::study {

// How far a command was at one moment.
struct WorkSeen {
  std::uint64_t launches = 0;         // of all its runs so far
  std::uint64_t launches_of_run = 0;  // of the run in hand
  std::uint32_t restarts = 0;         // how often it has ended and was started again
};

// A command is at work during a visit when it launched a kernel between beginning and end. One that
// did not, but had launched in the same run before, may still run what it has queued: it was at
// work if it launches again after the end without having been started again since the beginning.
class WorkWatch {
 public:
  enum class Verdict {
    working,
    waiting,   // perhaps: look again later
    not_seen,  // it cannot have been, whatever comes
  };

  void begin(const WorkSeen& seen) { begin_ = seen; }
  void end(const WorkSeen& seen) { end_ = seen; }
  // `seen`: at the end or later.
  [[nodiscard]] Verdict verdict(const WorkSeen& seen) const;
  [[nodiscard]] std::uint32_t restarts() const { return end_.restarts - begin_.restarts; }

 private:
  WorkSeen begin_;
  WorkSeen end_;
};

}  // namespace demarc::study
