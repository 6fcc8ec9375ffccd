// One kernel of a launch in execution.
#pragma once

#include <vector>

#include "demarc/emulate/card.hpp"
#include "module_memory.hpp"

namespace demarc::emulate {

// Adds what the kernel did to `outcome`. False: a block did not end.
[[nodiscard]] Result<bool> run_kernel(const ptx::Module& module, const gpu::Launch& launch,
                                      const gpu::KernelLaunch& kernel_launch,
                                      ModuleMemory& module_memory,
                                      const std::vector<Region>& buffer_regions, const Card& card,
                                      const Options& options, TraceSink* sink, Outcome& outcome);

[[nodiscard]] Result<InstructionSet> chosen_instruction_set(const Options& options);

}  // namespace demarc::emulate
