// PTX in, PTX out: a kernel runs a part of its grid, so that several cards share out its blocks.
//
// Every kernel gets four parameters more, after its own: u32 number of the part's first block in
// the grid (x first, then y, then z), u32 x, y, z of the whole grid. The launch has as many blocks
// as the part, in x alone. Threads see the block indices and the grid of the whole.
#pragma once

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Errors name the line. Errors are %ctaid or %nctaid in a device function, more than one axis of
// them at a time, a kernel that uses clusters, and a module that was already rewritten so or made
// SM-affine.
[[nodiscard]] Result<Module> rewrite_grid_part(const Module& module);

}  // namespace demarc::ptx
