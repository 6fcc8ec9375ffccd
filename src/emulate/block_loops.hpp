// Which blocks of a kernel run when.
#pragma once

#include "collector.hpp"

namespace demarc::emulate {

inline constexpr std::int64_t turn_among_blocks = 1 << 12;  // a block that waits for another spins

// One core's part: takes the `next` block until there is none. `reports`: of progress.
void run_blocks(const Program& program, Collector& collector, std::atomic<std::uint32_t>& next,
                std::uint32_t blocks, TraceSink* sink, bool plain_atomics, const Progress& progress,
                bool reports);

// All blocks on one core, up to `resident` of them at once, which take turns.
void run_in_turns(const Program& program, Collector& collector, std::uint32_t blocks,
                  std::uint32_t resident, TraceSink* sink, const Progress& progress);

}  // namespace demarc::emulate
