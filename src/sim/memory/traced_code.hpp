// What the simulation needs of a kernel's instructions beside their accesses: where a warp waits
// for its loads, barriers, cache operators.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/emulate/trace.hpp"
#include "instruction_text.hpp"

namespace demarc::sim::memory {

inline constexpr std::uint32_t no_use = ~std::uint32_t{0};

// By instruction.
struct TracedCode {
  // Of a load: the instruction before which a warp waits for it; no_use: it does not. That is where
  // a register that it writes is used next, or, in PTX, behind the loads of its basic block that
  // `ptxas` moves before that use: those whose addresses come from no load of the block, with no
  // store, atomic or barrier between.
  std::vector<std::uint32_t> first_use;
  std::vector<std::uint8_t> barrier;
  std::vector<std::uint8_t> reduces;
  std::vector<CacheUse> cache_use;
  std::vector<std::uint32_t> special;  // barriers and first uses before index i
  std::vector<std::uint32_t> floats;   // is_float_arithmetic() before index i
};

[[nodiscard]] TracedCode study_code(const std::vector<emulate::TraceInstruction>& instructions);

}  // namespace demarc::sim::memory
