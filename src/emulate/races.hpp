// The micro-op of fences.
#pragma once

#include "warp.hpp"

namespace demarc::emulate::race_ops {

const MicroOp* fence(Warp& w, const MicroOp* op);

}  // namespace demarc::emulate::race_ops
