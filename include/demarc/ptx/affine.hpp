// PTX in, PTX out: kernels become SM-affine [Fractional GPUs, section IV]. A grid of persistent
// blocks is launched instead of the kernel's own. A block on an SM outside the part leaves at once.
// The others take the original block indices from a counter until none is left, so the results are
// those of the original grid. The paper does this with macros in the source, and names a compiler
// as future work. Here it is done on the PTX of any kernel.
//
// Every kernel gets four parameters more, after its own: u64 address of its AffineQueue, u32 x, y,
// z of the original grid (at most 2^32 - 1 blocks in all). The launch uses blocks_per_sm x SMs
// blocks in x alone. Two launches with the same queue must not overlap; the last block to leave
// resets it.
//
// Threads may return early, and the others may have barriers after that: threads that have returned
// then keep coming to these barriers until all threads have (barrier.red, PTX 6.0 and sm_70).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Lies in global memory; all zeros except `sms`. Plain data, shared with the GPU.
struct AffineQueue {
  std::uint32_t next = 0;              // block index to be taken next
  std::uint32_t left = 0;              // blocks that are done
  std::array<std::uint32_t, 8> sms{};  // bit s: blocks may run on SM s (%smid)
};
static_assert(sizeof(AffineQueue) == 40);

// Errors name the line. Errors are %ctaid or %nctaid in a device function, a kernel that uses
// clusters, all sixteen barriers or barriers of the whole grid, and more parameters than a kernel
// may have.
[[nodiscard]] Result<Module> rewrite_affine(const Module& module);

}  // namespace demarc::ptx
