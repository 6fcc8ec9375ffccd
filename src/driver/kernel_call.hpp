// A kernel of a launch as a call of the driver: its function, made ready, and its arguments packed.
#pragma once

#include <vector>

#include "demarc/driver/launch.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::cuda {

class KernelCall {
 public:
  // `added` are arguments behind the kernel's own.
  static Result<KernelCall> prepare(const Module& module, const gpu::KernelLaunch& kernel,
                                    const std::vector<std::uint64_t>& addresses,
                                    const std::vector<std::uint32_t>& added = {});

  [[nodiscard]] const Function& function() const { return function_; }
  [[nodiscard]] Result<void> launch(const Stream& stream, const LaunchShape& shape);

 private:
  explicit KernelCall(Function function) : function_(std::move(function)) {}
  Function function_;
  std::vector<std::vector<std::byte>> arguments_;
};

// The variables of the module that the launch gives.
[[nodiscard]] Result<void> set_variables(const GpuPointer& gpu, const Module& module,
                                         const gpu::Launch& launch,
                                         const std::vector<std::uint64_t>& addresses);

}  // namespace demarc::cuda
