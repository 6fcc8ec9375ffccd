// Special registers: %tid, %laneid, %clock and their kin.
#pragma once

#include <optional>

#include "lower/emitter.hpp"
#include "lower/frame.hpp"
#include "lower/kernel.hpp"

namespace demarc::emulate {

// What the launch fixes is a constant; the rest takes a micro-op to read. Empty: not covered.
[[nodiscard]] std::optional<Source> special_source(const KernelContext& kernel,
                                                   const ptx::Operand& operand, Frame& frame,
                                                   Emitter& code);

}  // namespace demarc::emulate
