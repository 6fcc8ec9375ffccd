// Which blocks of a kernel run when.
#pragma once

#include "collector.hpp"

namespace demarc::emulate {

inline constexpr std::int64_t turn_among_blocks = 1 << 12;  // a block that waits for another spins

// What the trace sink of a kernel is to be told.
struct Tracing {
  bool on = false;            // accesses are traced
  bool instructions = false;  // and instructions, too
};

// The blocks of a kernel, which workers share.
struct BlockWork {
  const Program& program;
  Collector& collector;
  std::uint32_t blocks = 0;
  std::uint32_t at_once = 1;  // blocks that follow each other, which a worker takes together
  Tracing tracing{};
  bool plain_atomics = true;  // one worker
  const Progress& progress;
  std::atomic<std::uint64_t> next{0};
};

// So many at once that workers seldom meet, and that none is left with much in the end.
[[nodiscard]] std::uint32_t blocks_at_once(std::uint32_t blocks, unsigned threads);

// One core's part: takes the `next` blocks until there are none. The first worker reports progress,
// and calls the others once the kernel has run longer than it takes to start them.
void run_blocks(BlockWork& work, const std::function<void()>& call_others = {},
                bool reports = false);

// How many blocks are there at once: so many from the start, and so many where those that are there
// look at memory in vain.
struct Residents {
  std::uint32_t wanted = 1;
  std::uint32_t most = 1;
};

// All blocks on one core. Those that are there take turns.
void run_in_turns(const Program& program, Collector& collector, std::uint32_t blocks,
                  const Residents& resident, Tracing tracing, const Progress& progress);

}  // namespace demarc::emulate
