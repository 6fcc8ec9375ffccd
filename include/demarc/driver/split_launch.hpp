// One launch on several cards at once. Each card runs an equal part of each kernel's blocks. Each
// page of memory lies on the card that the caller chose. Cards reach each other's pages over their
// links.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "demarc/driver/gpu.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::cuda {

struct SplitPlan {
  std::uint64_t page_bytes = 0;  // a multiple of the driver's granularity
  // Card of each page, as an index of `gpus`, from default_base_address on, where the first buffer
  // of the launch begins (gpu::default_addresses).
  std::vector<std::uint32_t> owners;
  std::uint32_t runs = 1;  // with buffers as at the beginning
};

struct SplitRun {
  struct Kernel {
    std::string kernel;
    std::vector<double> milliseconds;  // of each card's blocks, between two events around them
  };
  std::vector<std::uint64_t> addresses;      // addresses of the buffers
  gpu::Memory buffers;                       // after the last run
  std::vector<std::vector<Kernel>> kernels;  // per run, in the order of Launch::kernels
};

// `image` is PTX text, `source` names it in errors. A kernel begins on all cards once the one
// before it has ended on all. invalid_input for buffers in host memory or at fixed addresses, for
// pages that do not hold all buffers, and for kernels that ptx::rewrite_grid_part refuses;
// missing_capability if the cards do not reach each other; check_failed if a kernel does not end
// within `limit`.
[[nodiscard]] Result<SplitRun> run_split(const std::vector<GpuPointer>& gpus,
                                         const gpu::Launch& launch, const std::string& image,
                                         const std::string& source, const SplitPlan& plan,
                                         std::chrono::milliseconds limit = default_timeout);

}  // namespace demarc::cuda
