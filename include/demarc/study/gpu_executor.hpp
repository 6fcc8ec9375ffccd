// The executor on a real GPU.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "demarc/partition/partition.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

struct GpuExecutorOptions {
  std::uint32_t device = 0;
  // This program: started again with "isolate --device cuda:N --worker" for modes that divide the
  // GPU between processes.
  std::string program;
  // How long a command that is an aggressor gets until it is taken to be busy.
  double command_settle_seconds = 8;
  // Which TPCs go to which part under mask and affinity.
  partition::SplitStrategy split = partition::SplitStrategy::gpc_aligned;
  // Pages of 2 MiB taken, times the parts, to find enough of one kind for coloured memory.
  std::uint32_t arena_pages_a_part = 6144;
};

// missing_capability without a driver or a GPU.
[[nodiscard]] Result<std::unique_ptr<Executor>> make_gpu_executor(
    const GpuExecutorOptions& options);

}  // namespace demarc::study
