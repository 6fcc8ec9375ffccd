// One PTX instruction as an operation on row values.
#pragma once

#include "slice.hpp"

namespace demarc::locality {

// The operation and its sources; `poison` for anything that is not followed. Slots are registers.
[[nodiscard]] SliceOperation translate_instruction(
    const ptx::Module& module, const ptx::Function& function, const ptx::Instruction& instruction,
    const std::vector<std::vector<std::byte>>& parameters);

}  // namespace demarc::locality
