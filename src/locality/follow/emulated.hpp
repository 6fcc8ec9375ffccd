// Runs from the emulator: exact for whatever the kernel does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/launch/launch.hpp"
#include "demarc/locality/analyse.hpp"
#include "demarc/locality/runs.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::locality {

struct EmulatedRuns {
  AccessRuns runs;
  std::size_t kernel_launch = 0;      // index in Launch::kernels
  std::vector<std::string> findings;  // accesses outside of the buffers or not aligned, in words
};

// Runs the kernels 0 .. last and keeps the accesses of the launch among `wanted` (ascending
// indices) that executes most global loads. `accesses` are those known so far; more are added as
// they are met.
[[nodiscard]] Result<EmulatedRuns> emulate_runs(const ptx::Module& module,
                                                const gpu::Launch& launch,
                                                const std::vector<std::size_t>& wanted,
                                                const std::vector<Access>& accesses,
                                                unsigned threads, const Effort& effort,
                                                const Progress& progress);

}  // namespace demarc::locality
