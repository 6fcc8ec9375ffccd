// A device as a tree for people.
#pragma once

#include <string>

#include "demarc/device/device.hpp"

namespace demarc::gpu {

// One line per GPC: its TPCs, SMs, hardware bits and L2 side.
//
//   NVIDIA H100 80GB HBM3: 132 SMs, 66 TPCs, 12 GPCs, 50 MiB L2, 79.6 GiB memory
//   |- GPC 0: 4 TPCs, 8 SMs, L2 side 0
//   |    TPC 0 (SM 0-1, bit 0)  TPC 8 (SM 16-17, bit 1)  ...
[[nodiscard]] std::string to_tree(const Device& device);

}  // namespace demarc::gpu
