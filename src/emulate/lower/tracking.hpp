// What the emulator has to know of an instruction in order to follow bits that were not written.
#pragma once

#include <vector>

#include "lower/function.hpp"
#include "lower/instruction_view.hpp"

namespace demarc::emulate {

// Which registers of the function any instruction reads.
[[nodiscard]] std::vector<bool> read_registers(const ptx::Function& function);

// To be called once the instruction is lowered. A load that no instruction reads is not followed:
// the load itself is what its bytes are for.
void track(FunctionContext& f, const InstructionView& instruction,
           const std::vector<bool>& is_read);

}  // namespace demarc::emulate
