// Runs blocks on all cores, or in turns on one.
#include "block_loops.hpp"

#include <algorithm>
#include <chrono>
#include <deque>

namespace demarc::emulate {

namespace {

constexpr std::uint32_t max_at_once = 64;
constexpr std::uint32_t shares = 32;  // per worker
constexpr auto time_to_start = std::chrono::microseconds(100);

bool hangs(const Block& block) {
  return std::any_of(block.findings.begin(), block.findings.end(), [](const PendingFinding& found) {
    return found.finding.kind == FindingKind::hang;
  });
}

}  // namespace

std::uint32_t blocks_at_once(std::uint32_t blocks, unsigned threads) {
  return std::clamp(blocks / (threads * shares), 1U, max_at_once);
}

void run_blocks(BlockWork& work, const std::function<void()>& call_others, bool reports) {
  FramePool pool;
  Block block(work.program, pool);
  Leavings left;
  block.flush = [&](Block& running) {
    work.collector.flush_or_wait(running, running.linear, left);
  };
  for (Warp& warp : block.warps) warp.plain_atomics = work.plain_atomics;
  const auto start = std::chrono::steady_clock::now();
  bool alone = static_cast<bool>(call_others);
  const auto call_when_late = [&] {
    if (!alone || std::chrono::steady_clock::now() - start < time_to_start) return;
    alone = false;
    call_others();
  };
  bool ended = false;  // by a block that hangs: those behind it give nothing
  while (!ended) {
    const std::uint64_t first = work.next.fetch_add(work.at_once);
    if (first >= work.blocks) break;
    auto number = static_cast<std::uint32_t>(first);
    const std::uint32_t end = std::min(work.blocks - number, work.at_once) + number;
    for (; number < end && !ended; ++number) {
      if (work.collector.over()) return;
      block.start(number, work.tracing.on, work.tracing.instructions);
      while (block.advance(block.stalled)) {
        if (work.collector.over()) return;
        call_when_late();
      }
      ended = hangs(block);
      work.collector.finish(block, number, left);
      if (reports) {
        report_progress(work.progress, static_cast<double>(number + 1) / work.blocks,
                        work.program.kernel);
      }
      call_when_late();
    }
    work.collector.hand_over(left);
  }
}

void run_in_turns(const Program& program, Collector& collector, std::uint32_t blocks,
                  const Residents& resident, Tracing tracing, const Progress& progress) {
  struct Running {
    Running(const Program& code, FramePool& frames) : block(code, frames) {}
    Block block;
    bool ended = false;
    std::shared_ptr<Cluster> cluster;
  };
  FramePool pool;
  std::deque<std::unique_ptr<Running>> open;  // in the order of their numbers
  std::vector<std::unique_ptr<Running>> spare;
  std::map<std::uint64_t, std::shared_ptr<Cluster>> clusters;  // of which blocks have begun
  const std::uint64_t cluster_threads = std::uint64_t{program.cluster.size()} * program.block[0] *
                                        program.block[1] * program.block[2];
  std::uint32_t next = 0;
  Leavings none;  // blocks are collected as they end
  // Instructions since something changed last, of the blocks that are there.
  std::uint64_t vain = 0;
  const auto start_next = [&] {
    auto one = spare.empty() ? std::make_unique<Running>(program, pool) : std::move(spare.back());
    if (!spare.empty()) spare.pop_back();
    one->block.flush = [&](Block& running) { collector.flush(running, running.linear, none); };
    one->block.start(next++, tracing.on, tracing.instructions);
    if (program.in_clusters) {
      std::shared_ptr<Cluster>& cluster =
          clusters[program.cluster.cluster(one->block.index, program.grid)];
      if (!cluster) cluster = std::make_shared<Cluster>(program.cluster.size(), cluster_threads);
      one->cluster = cluster;
      one->block.cluster = cluster.get();
      cluster->begin(program.cluster.rank(one->block.index), one->block);
    }
    open.push_back(std::move(one));
  };
  const auto end = [&](Running& one) {
    one.ended = true;
    if (!one.cluster) return;
    if (one.cluster->end(program.cluster.rank(one.block.index)))
      clusters.erase(program.cluster.cluster(one.block.index, program.grid));
  };
  while (!collector.over()) {
    // Where nothing has changed since the last round, lanes that wait for each other part.
    const bool apart = vain != 0;
    std::uint32_t running = 0;
    bool idle = true;
    bool stalled = true;
    std::uint64_t executed = 0;
    for (const auto& one : open) {
      if (one->ended) continue;
      executed -= one->block.executed;
      if (one->block.advance(apart)) {
        ++running;
      } else {
        end(*one);
      }
      executed += one->block.executed;
      idle = idle && one->block.idle;
      stalled = stalled && (one->block.idle || one->block.stalled);
    }
    // Before more blocks begin, lanes part.
    const bool lacks_blocks = stalled && apart;
    vain = stalled && !idle ? vain + executed : 0;
    if (vain > program.instruction_limit) {
      Running& first =
          **std::find_if(open.begin(), open.end(), [](const auto& one) { return !one->ended; });
      first.block.report_hang(
          fmt::format("{} blocks of {} are there, and all of them look at memory that none of them "
                      "changes; --resident gives how many are there at once",
                      running, blocks));
      end(first);
    }
    const auto left =
        std::find_if(open.begin(), open.end(), [](const auto& one) { return !one->ended; });
    std::for_each(open.begin(), left, [&](auto& one) {
      const std::uint32_t number = one->block.linear;
      collector.finish(one->block, number, none);
      report_progress(progress, static_cast<double>(number + 1) / blocks, program.kernel);
      one->ended = false;
      spare.push_back(std::move(one));
    });
    open.erase(open.begin(), left);
    const std::uint32_t wanted =
        std::max(resident.wanted, std::min(lacks_blocks ? 2 * running : 1, resident.most));
    if (next < blocks && running < wanted) {
      do start_next();
      while (++running < wanted && next < blocks && lacks_blocks);
    } else if (open.empty()) {
      break;
    } else if (idle) {
      // All wait for each other, and no block that they may wait for is still to come.
      for (const auto& one : open) {
        if (!one->ended) one->block.report_stuck();
      }
    }
  }
}

}  // namespace demarc::emulate
