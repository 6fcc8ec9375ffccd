// PTX in, PTX out: kernels become SM-affine [Fractional GPUs, section IV]. A grid of persistent
// blocks is launched instead of the kernel's own; a block on an SM outside the part leaves at once,
// the others take the original block indices from a counter until none is left, so that the results
// are those of the original grid. What the paper does with macros in the source, and names as
// future work for a compiler, is done here on the PTX of any kernel.
//
// Every kernel gets four parameters more, after its own: u64 address of its AffineQueue, u32 x, y,
// z of the original grid (at most 2^32 - 1 blocks in all). The launch uses blocks_per_sm x SMs
// blocks in x alone. Two launches with the same queue must not overlap; the last block to leave
// resets it.
//
// Returning early and barriers both work; a barrier that only some threads of a block reach, after
// the others have returned, does not (CUDA leaves it undefined).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// In global memory, zeros but for `sms`. Plain data, shared with the GPU.
struct AffineQueue {
  std::uint32_t next = 0;              // block index to be taken next
  std::uint32_t left = 0;              // blocks that are done
  std::array<std::uint32_t, 8> sms{};  // bit s: blocks may run on SM s (%smid)
};
static_assert(sizeof(AffineQueue) == 40);

// Errors name the line: %ctaid or %nctaid in a device function, a kernel that uses clusters or all
// sixteen barriers.
[[nodiscard]] Result<Module> rewrite_affine(const Module& module);

}  // namespace demarc::ptx
