// Runs an instruction case in the emulator and compares with its reference.
#pragma once

#include <string>
#include <vector>

#include "demarc/emulate/emulate.hpp"
#include "demarc/ptx/parser.hpp"
#include "instructions/instruction_case.hpp"

namespace demarc::emulate::test {

// Buffer 0: 8 bytes a source and thread; buffer 1: 16 bytes a thread, all ones at the start.
[[nodiscard]] gpu::Launch launch_of_case(const InstructionCase& entry,
                                         const std::vector<Inputs>& inputs, unsigned uniform);
[[nodiscard]] gpu::Memory memory_of_case(const InstructionCase& entry,
                                         const std::vector<Inputs>& inputs);

// Results of every thread, two words each. With `uniform` sources taken from inputs[0].
[[nodiscard]] Result<std::vector<Results>> emulate_case(const InstructionCase& entry,
                                                        const std::vector<Inputs>& inputs,
                                                        unsigned uniform, bool masked,
                                                        const Options& options = {});

// Empty when every result is right, else the first that is not.
[[nodiscard]] std::string run_case(const InstructionCase& entry, std::vector<Inputs> inputs,
                                   unsigned uniform, bool masked, const Options& options = {});

}  // namespace demarc::emulate::test
