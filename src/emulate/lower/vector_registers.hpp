// Vector registers, as `.reg .v4 .f32 v`: lowering knows none.
#pragma once

#include <optional>

#include "demarc/ptx/ir.hpp"

namespace demarc::emulate {

// The module with a register for each element: v.y is one of them, and v is {v.x, v.y, v.z, v.w}.
// Empty: the module has no vector registers.
[[nodiscard]] std::optional<ptx::Module> without_vector_registers(const ptx::Module& module);

}  // namespace demarc::emulate
