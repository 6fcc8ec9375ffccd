// What blocks leave behind, taken in block order.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>

#include "machine.hpp"

namespace demarc::emulate {

// Blocks are handed out in ascending order; what they leave behind is collected in that order, too:
// trace chunks, findings, printed text. A worker may run ahead of the collection by a bounded
// number of blocks.
class Collector {
 public:
  Collector(TraceSink* sink, Outcome& outcome, std::size_t finding_limit)
      : sink_(sink), outcome_(outcome), finding_limit_(finding_limit) {}

  // Trace words of a block that is still running: passed on at once when it is this block's turn.
  bool flush(Block& block, std::uint32_t number) {
    if (turn_.load(std::memory_order_acquire) != number) return false;
    pass_on(block, number, false);
    return true;
  }

  void finish(Block& block, std::uint32_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turn_.load() == number || over(); });
    if (over()) return end_turn(number);
    if (sink_ != nullptr) pass_on(block, number, true);
    add_findings(block);
    outcome_.printed += block.printed;
    KernelStatistics& statistics = outcome_.kernels.back();
    for (const Warp& warp : block.warps) {
      statistics.thread_instructions += warp.thread_instructions;
      statistics.warp_instructions += warp.warp_instructions;
      statistics.divergent_branches += warp.divergent_branches;
      statistics.barriers += warp.barriers;
      statistics.memory_accesses += warp.memory_accesses;
      statistics.longest_warp = std::max(statistics.longest_warp, warp.warp_instructions);
    }
    end_turn(number);
  }

  // A worker that cannot go on: the others end, too. The first one's exception is rethrown.
  void abandon(std::exception_ptr thrown) {
    const std::lock_guard lock(mutex_);
    if (!thrown_) thrown_ = std::move(thrown);
    failed_.store(true);
    changed_.notify_all();
  }
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

  // No more blocks are to be run: an error, or a block that did not end.
  [[nodiscard]] bool over() const { return failed_.load() || ended_.load(); }
  [[nodiscard]] bool ended() const { return ended_.load(); }
  [[nodiscard]] bool failed() const { return failed_.load(); }
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] std::uint32_t turn() const { return turn_.load(); }

 private:
  void end_turn(std::uint32_t number) {
    turn_.store(number + 1, std::memory_order_release);
    changed_.notify_all();
  }

  void pass_on(Block& block, std::uint32_t number, bool last) {
    TraceChunk chunk;
    chunk.block = number;
    chunk.last = last;
    chunk.words = std::span(block.trace.data(), block.trace_used);
    if (!over()) {
      if (auto consumed = sink_->consume(chunk); !consumed) {
        error_ = consumed.error();
        failed_.store(true);
      }
    }
    block.trace_used = 0;
  }

  void add_findings(Block& block) {
    for (PendingFinding& pending : block.findings) {
      if (pending.finding.kind == FindingKind::hang) ended_.store(true);
      const auto known = std::find_if(
          outcome_.findings.begin(), outcome_.findings.end(), [&](const Finding& finding) {
            return finding.kind == pending.finding.kind && finding.line == pending.finding.line &&
                   finding.kernel == pending.finding.kernel;
          });
      if (known != outcome_.findings.end()) {
        known->count += pending.finding.count;
      } else if (outcome_.findings.size() < finding_limit_) {
        outcome_.findings.push_back(std::move(pending.finding));
      }
    }
  }

  TraceSink* sink_;
  Outcome& outcome_;
  std::size_t finding_limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<std::uint32_t> turn_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> ended_{false};
  Error error_;
  std::exception_ptr thrown_;
};

}  // namespace demarc::emulate
