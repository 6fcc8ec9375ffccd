// One kernel of a launch in execution.
#pragma once

#include <vector>

#include "demarc/emulate/card.hpp"
#include "module_memory.hpp"

namespace demarc::emulate {

// What the kernels of a launch run with. All of it outlives the run.
struct Surroundings {
  const ptx::Module& module;
  const gpu::Launch& launch;
  ModuleMemory& memory;
  const std::vector<Region>& buffers;  // where those of the launch lie
  const Card& card;
  const Options& options;
  TraceSink* sink = nullptr;
};

// Adds what the kernel did to `outcome`. False: a block did not end.
[[nodiscard]] Result<bool> run_kernel(const Surroundings& given, const gpu::KernelLaunch& launched,
                                      Outcome& outcome);

[[nodiscard]] Result<InstructionSet> chosen_instruction_set(const Options& options);

}  // namespace demarc::emulate
