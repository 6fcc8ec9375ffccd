// PTX in, PTX out: a sequence of launches becomes one. The kernels of a module are put into one
// persistent kernel that goes through a list of steps. Each step was a launch. The kernel's blocks
// share out the step's blocks and wait for each other before the next step, so every step sees what
// the steps before it wrote. The cost of a launch, and what can disturb a launch, occurs only once.
//
// All blocks must be resident at the same time: at most blocks_per_sm x SMs of them, on SMs where
// nothing else runs; else they wait for ever.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// One step in global memory. The arguments lie one behind the other, in the kernel's order, each at
// a multiple of its own alignment.
struct FusedStep {
  std::uint32_t kernel = 0;  // index in Module::kernels()
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};  // a multiple of 32 threads in all
  std::uint32_t blocks = 1;                     // in all
  std::array<std::uint8_t, 224> arguments{};
};
static_assert(sizeof(FusedStep) == 256);

// The state lies in global memory. It is zeros at first, and again when the kernel has ended.
inline constexpr std::uint64_t fused_state_bytes = 256;

// The kernel of the result: demarc_fused(u64 steps, u32 count, u64 state), with as many threads per
// block (in x) as the largest step has. Errors name the line. Errors are an instruction that uses a
// parameter without loading it, a barrier other than `bar.sync` with a constant below 15, and
// clusters.
[[nodiscard]] Result<Module> rewrite_fused(const Module& module);

// Byte offsets of a kernel's parameters in FusedStep::arguments. It is an error if they do not fit.
[[nodiscard]] Result<std::vector<std::uint32_t>> fused_offsets(const Function& kernel);

}  // namespace demarc::ptx
