// Immediates.
#pragma once

#include <cstdint>

#include "demarc/ptx/ir.hpp"

namespace demarc::emulate {

// The bits of an immediate as an operand of `type`.
[[nodiscard]] std::uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type);

}  // namespace demarc::emulate
