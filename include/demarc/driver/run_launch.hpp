// Runs a whole launch on a card: allocates and fills buffers, sets variables of the module, runs
// its kernels in order on one stream, and reads the buffers back.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/driver/gpu.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::cuda {

struct KernelRun {
  std::string kernel;
  double milliseconds = 0;          // between two events around it
  std::uint32_t registers = 0;      // per thread
  std::uint32_t blocks_per_sm = 0;  // resident at a time, as the driver counts
};

struct LaunchRun {
  std::vector<std::uint64_t> addresses;  // addresses of the buffers
  gpu::Memory buffers;                   // after the last kernel
  std::vector<KernelRun> kernels;        // as in Launch::kernels
};

// `image` is PTX text, `source` names it in errors. missing_capability for what the driver refuses;
// check_failed if a kernel does not end within `limit`.
[[nodiscard]] Result<LaunchRun> run_launch(const GpuPointer& gpu, const gpu::Launch& launch,
                                           const std::string& image, const std::string& source,
                                           std::chrono::milliseconds limit = default_timeout);

}  // namespace demarc::cuda
