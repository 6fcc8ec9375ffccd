// Loops over memory without a kernel: what stress kernels and probes do, step by step as asked for.
#pragma once

#include "demarc/sim/memory/spec.hpp"
#include "demarc/sim/memory/work.hpp"

namespace demarc::sim::memory {

enum class WalkOrder : std::uint8_t { ascending, random };

// Visits every line of [base, base + bytes) once per round; lines are dealt to the warps in turn.
// `ahead` loads of a warp are under way at a time: with 1 each waits for the one before.
struct Walk {
  Address base = {};
  std::uint64_t bytes = std::uint64_t{1} << 20U;
  // If not empty, the walk goes over these chunks of 1 << chunk_shift bytes instead; chunk c lies
  // at c << chunk_shift.
  std::shared_ptr<const std::vector<std::uint32_t>> chunks = {};
  std::uint32_t chunk_shift = 12;
  StepKind kind = StepKind::load;
  WalkOrder order = WalkOrder::ascending;
  std::uint32_t sectors = 4;  // per line
  std::uint32_t blocks = 1;
  std::uint32_t threads = 256;
  std::uint32_t rounds = 1;
  std::uint32_t ahead = 4;
  std::uint32_t instructions = 4;  // between two accesses
};

// `bytes` and chunks are whole lines; blocks and threads are not 0.
[[nodiscard]] std::unique_ptr<Source> walk_source(const Walk& walk);

}  // namespace demarc::sim::memory
