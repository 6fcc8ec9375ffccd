// IR -> PTX text. `ptxas` makes the same machine code from this text as from the text that was
// parsed.
#pragma once

#include <string>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

[[nodiscard]] std::string print(const Module& module);

// One instruction without indentation and line end: "@%p1 ld.global.f32 %f1, [%rd4+16];"
[[nodiscard]] std::string print(const Module& module, const Function& function,
                                const Instruction& instruction);
[[nodiscard]] std::string print(const Module& module, const Function& function,
                                const Operand& operand);

}  // namespace demarc::ptx
