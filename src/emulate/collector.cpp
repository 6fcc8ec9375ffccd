// Collects traces, findings and printed text of blocks in their order, whichever thread ran them.
#include "collector.hpp"

namespace demarc::emulate {

namespace {

// A worker keeps so many before it waits for its turn: from blocks that have ended, and from one
// that has not.
constexpr std::size_t max_words = 1 << 19;
constexpr std::size_t max_words_of_block = 1 << 22;

void add_statistics(KernelStatistics& sum, const Block& block) {
  for (const Warp& warp : block.warps) {
    sum.thread_instructions += warp.thread_instructions;
    sum.warp_instructions += warp.warp_instructions;
    sum.divergent_branches += warp.divergent_branches;
    sum.barriers += warp.barriers;
    sum.memory_accesses += warp.memory_accesses;
    sum.longest_warp = std::max(sum.longest_warp, warp.warp_instructions);
  }
}

void add_statistics(KernelStatistics& sum, const KernelStatistics& part) {
  sum.thread_instructions += part.thread_instructions;
  sum.warp_instructions += part.warp_instructions;
  sum.divergent_branches += part.divergent_branches;
  sum.barriers += part.barriers;
  sum.memory_accesses += part.memory_accesses;
  sum.longest_warp = std::max(sum.longest_warp, part.longest_warp);
}

}  // namespace

void Leavings::add(Block& block, std::uint32_t number, bool traced) {
  if (blocks == 0) first = number;
  ++blocks;
  add_statistics(statistics, block);
  std::move(block.findings.begin(), block.findings.end(), std::back_inserter(findings));
  printed += block.printed;
  if (!traced) return;
  words.insert(words.end(), block.trace.begin(),
               block.trace.begin() + static_cast<std::ptrdiff_t>(block.trace_used));
  traces.push_back({.block = number, .end = words.size()});
  block.trace_used = 0;
}

void Collector::flush(Block& block, std::uint32_t number, Leavings& before) {
  if (!is_turn(before.blocks == 0 ? number : before.first)) return;
  const std::lock_guard lock(mutex_);
  collect(before);
  pass_on({block.trace.data(), block.trace_used}, number, false);
  block.trace_used = 0;
}

void Collector::flush_or_wait(Block& block, std::uint32_t number, Leavings& before) {
  const std::uint32_t first = before.blocks == 0 ? number : before.first;
  if (block.trace_used > max_words_of_block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_turn(first) || over(); });
  }
  if (over()) block.trace_used = 0;
  flush(block, number, before);
}

void Collector::finish(Block& block, std::uint32_t number, Leavings& before) {
  const std::uint32_t first = before.blocks == 0 ? number : before.first;
  if (!is_turn(first) && before.words.size() < max_words) {
    before.add(block, number, sink_ != nullptr);
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_turn(first) || over(); });
  collect(before);
  if (over()) return;
  if (sink_ != nullptr) pass_on({block.trace.data(), block.trace_used}, number, true);
  block.trace_used = 0;
  add_findings(block.findings);
  outcome_.printed += block.printed;
  add_statistics(outcome_.kernels.back(), block);
  turn_.store(number + 1, std::memory_order_release);
  collect_waiting();
}

void Collector::hand_over(Leavings& left) {
  if (left.blocks == 0) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_turn(left.first) || waiting_.size() < ahead_ || over(); });
  if (is_turn(left.first)) {
    collect(left);
    collect_waiting();
  } else {
    const std::uint32_t first = left.first;
    waiting_.emplace(first, std::move(left));
  }
  left = {};
}

void Collector::abandon(std::exception_ptr thrown) {
  const std::lock_guard lock(mutex_);
  if (!thrown_) thrown_ = std::move(thrown);
  failed_.store(true);
  changed_.notify_all();
}

void Collector::collect(Leavings& left) {
  if (left.blocks == 0 || over()) return;
  std::size_t begin = 0;
  for (const Leavings::Trace& trace : left.traces) {
    pass_on({left.words.data() + begin, trace.end - begin}, trace.block, true);
    begin = trace.end;
  }
  add_findings(left.findings);
  outcome_.printed += left.printed;
  add_statistics(outcome_.kernels.back(), left.statistics);
  turn_.store(left.first + left.blocks, std::memory_order_release);
  left = {};
}

// To be called where the turn has moved on.
void Collector::collect_waiting() {
  for (auto next = waiting_.find(turn_.load()); next != waiting_.end();
       next = waiting_.find(turn_.load())) {
    if (over()) break;
    collect(next->second);
    waiting_.erase(next);
  }
  changed_.notify_all();
}

void Collector::pass_on(std::span<const std::uint64_t> words, std::uint32_t number, bool last) {
  if (over()) return;
  TraceChunk chunk;
  chunk.block = number;
  chunk.last = last;
  chunk.words = words;
  if (auto consumed = sink_->consume(chunk); !consumed) {
    error_ = consumed.error();
    failed_.store(true);
    changed_.notify_all();  // workers may wait for a turn that does not come any more
  }
}

void Collector::add_findings(std::vector<PendingFinding>& findings) {
  for (PendingFinding& pending : findings) {
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

}  // namespace demarc::emulate
