// Tensor maps of a launch as the driver of a card makes them.
#pragma once

#include <cstddef>
#include <vector>

#include "demarc/driver/gpu.hpp"
#include "demarc/launch/launch.hpp"

namespace demarc::cuda {

// The 128 bytes that a kernel takes as its argument.
[[nodiscard]] Result<std::vector<std::byte>> tensor_argument(
    const GpuPointer& gpu, const gpu::TensorMap& map, const std::vector<std::uint64_t>& addresses);

}  // namespace demarc::cuda
