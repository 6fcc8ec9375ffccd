// One PTX instruction as an operation on row values.
#pragma once

#include <optional>

#include "follow/slice.hpp"

namespace demarc::locality {

// The address of a variable of the module in global memory, with its offset; nothing: of anything
// else.
[[nodiscard]] std::optional<std::uint64_t> variable_address(const ptx::Operand& operand,
                                                            const LeafValues& leaves);

// The operation and its sources; `poison` for anything that is not followed. Slots are registers.
[[nodiscard]] SliceOperation translate_instruction(const ptx::Module& module,
                                                   const ptx::Function& function,
                                                   const ptx::Instruction& instruction,
                                                   const LeafValues& leaves);

}  // namespace demarc::locality
