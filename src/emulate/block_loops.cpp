// Blocks on all cores, or in turns on one.
#include "block_loops.hpp"

#include <deque>

namespace demarc::emulate {

void run_blocks(const Program& program, Collector& collector, std::atomic<std::uint32_t>& next,
                std::uint32_t blocks, TraceSink* sink, bool plain_atomics, const Progress& progress,
                bool reports) {
  FramePool pool;
  Block block(program, pool);
  const bool tracing = sink != nullptr;
  const bool runs = tracing && sink->wants_instructions();
  std::uint32_t number = 0;
  block.flush = [&](Block& running) { collector.flush(running, number); };
  for (Warp& warp : block.warps) warp.plain_atomics = plain_atomics;
  for (;;) {
    number = next.fetch_add(1);
    if (number >= blocks || collector.over()) break;
    block.start(number, tracing, runs);
    block.run();
    collector.finish(block, number);
    if (reports)
      report_progress(progress, static_cast<double>(number + 1) / blocks, program.kernel);
  }
}

void run_in_turns(const Program& program, Collector& collector, std::uint32_t blocks,
                  std::uint32_t resident, TraceSink* sink, const Progress& progress) {
  struct Running {
    Running(const Program& code, FramePool& frames) : block(code, frames) {}
    Block block;
    std::uint32_t number = 0;
    bool ended = false;
  };
  FramePool pool;
  std::deque<std::unique_ptr<Running>> open;  // in the order of their numbers
  std::vector<std::unique_ptr<Running>> spare;
  const bool tracing = sink != nullptr;
  std::uint32_t next = 0;
  const auto start_next = [&] {
    if (spare.empty()) spare.push_back(std::make_unique<Running>(program, pool));
    std::unique_ptr<Running> one = std::move(spare.back());
    spare.pop_back();
    one->number = next++;
    one->ended = false;
    one->block.flush = [&collector, number = one->number](Block& running) {
      collector.flush(running, number);
    };
    one->block.start(one->number, tracing, tracing && sink->wants_instructions());
    open.push_back(std::move(one));
  };
  while (!collector.over()) {
    std::uint32_t running = 0;
    for (const auto& one : open) {
      if (!one->ended) one->ended = !one->block.advance();
      if (!one->ended) ++running;
    }
    while (!open.empty() && open.front()->ended) {
      collector.finish(open.front()->block, open.front()->number);
      report_progress(progress, static_cast<double>(open.front()->number + 1) / blocks,
                      program.kernel);
      spare.push_back(std::move(open.front()));
      open.pop_front();
    }
    if (next < blocks && running < resident) {
      start_next();
    } else if (open.empty()) {
      break;
    }
  }
}

}  // namespace demarc::emulate
