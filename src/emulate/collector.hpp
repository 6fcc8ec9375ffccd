// What blocks leave behind, taken in block order.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "machine.hpp"

namespace demarc::emulate {

// What blocks that follow each other have left behind while it was not their turn.
struct Leavings {
  // Part of the words: a block's.
  struct Trace {
    std::uint32_t block = 0;
    std::size_t end = 0;
  };

  std::uint32_t first = 0;
  std::uint32_t blocks = 0;
  KernelStatistics statistics;
  std::vector<PendingFinding> findings;
  std::string printed;
  std::vector<std::uint64_t> words;
  std::vector<Trace> traces;

  void add(Block& block, std::uint32_t number, bool traced);
};

// Blocks are handed out in ascending order; what they leave behind is collected in that order, too:
// trace chunks, findings, printed text. A worker goes on while it is not its turn, ahead of the
// collection by a bounded number of blocks: to wait for each other at every block costs more than a
// short block itself.
class Collector {
 public:
  // `ahead`: what workers have left that may wait to be collected.
  Collector(TraceSink* sink, Outcome& outcome, std::size_t finding_limit, std::size_t ahead)
      : sink_(sink), outcome_(outcome), finding_limit_(finding_limit), ahead_(ahead) {}

  // Trace words of a block that is still running: passed on at once when it is its turn, or that of
  // the blocks that the same worker has ended before it.
  void flush(Block& block, std::uint32_t number, Leavings& before);
  // The same by a worker that may wait for its turn, which it does once it has many words: a block
  // that does not end would fill all memory.
  void flush_or_wait(Block& block, std::uint32_t number, Leavings& before);

  // A block has ended. `before`: what the worker's blocks just before it left.
  void finish(Block& block, std::uint32_t number, Leavings& before);
  // The worker goes on with other blocks than the next one.
  void hand_over(Leavings& left);

  // A worker that cannot go on: the others end, too. The first one's exception is rethrown.
  void abandon(std::exception_ptr thrown);
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  // No more blocks are to be run: an error, or a block that did not end.
  [[nodiscard]] bool over() const { return failed_.load() || ended_.load(); }
  [[nodiscard]] bool ended() const { return ended_.load(); }
  [[nodiscard]] bool failed() const { return failed_.load(); }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  [[nodiscard]] bool is_turn(std::uint32_t number) const {
    return turn_.load(std::memory_order_acquire) == number;
  }
  void collect(Leavings& left);
  void collect_waiting();
  void pass_on(std::span<const std::uint64_t> words, std::uint32_t number, bool last);
  void add_findings(std::vector<PendingFinding>& findings);

  TraceSink* sink_;
  Outcome& outcome_;
  std::size_t finding_limit_;
  std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, Leavings> waiting_;  // by their first block
  std::atomic<std::uint32_t> turn_{0};         // the first block that has not been collected
  std::atomic<bool> failed_{false};
  std::atomic<bool> ended_{false};
  Error error_;
  std::exception_ptr thrown_;
};

}  // namespace demarc::emulate
