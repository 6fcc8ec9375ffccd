// Launches and instruction cases on a real card.
#pragma once

#include <string>
#include <vector>

#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"
#include "demarc/launch/launch.hpp"
#include "instructions/instruction_case.hpp"

namespace demarc::emulate::test {

// All kernels of the launch in sequence on fresh buffers; their contents afterwards, with every
// device address in them replaced by that of the emulator (gpu::default_addresses).
[[nodiscard]] Result<gpu::Memory> run_on_card(const cuda::GpuPointer& card, const std::string& ptx,
                                              const gpu::Launch& launch);
// The same with these contents of the buffers before.
[[nodiscard]] Result<gpu::Memory> run_on_card(const cuda::GpuPointer& card, const std::string& ptx,
                                              const gpu::Launch& launch, gpu::Memory memory);

// One kernel of `module` by the instruction case's convention (kernel_body).
[[nodiscard]] Result<std::vector<Results>> run_case_on_card(const cuda::GpuPointer& card,
                                                            const cuda::Module& module,
                                                            const std::string& kernel,
                                                            const InstructionCase& entry,
                                                            const std::vector<Inputs>& inputs);

}  // namespace demarc::emulate::test
