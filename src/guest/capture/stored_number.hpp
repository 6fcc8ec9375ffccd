// The type of the numbers that a kernel stores, from its PTX.
#pragma once

#include <optional>
#include <string>

#include "demarc/launch/scalar_type.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::cuda {

// The one floating type, f16, f32 or f64, of all numbers that `kernel` of `module` writes to memory
// that others see; nothing where it also writes others, or where a write does not tell. Compilers
// that store bits (st.global.b32) are seen through: what made the register counts, also through
// shared memory.
[[nodiscard]] std::optional<gpu::ScalarType> stored_number(const ptx::Module& module,
                                                           const std::string& kernel);

}  // namespace demarc::cuda
