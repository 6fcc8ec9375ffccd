// What of a kernel a card does otherwise.
#pragma once

#include "lower/instruction_view.hpp"
#include "lower/kernel.hpp"

namespace demarc::emulate {

// Adds to Program::approximations when the instruction is one, each mnemonic once.
void note_approximation(const KernelContext& kernel, const InstructionView& instruction);

}  // namespace demarc::emulate
