// In which order SMs are given blocks, and what they share on the way to memory.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/device/device.hpp"

namespace demarc::locality {

struct SmPlace {
  std::uint32_t side = 0;  // half of the L2 it is near to
  gpu::TpcIndex tpc;       // whose SMs' requests for the same sectors are merged
};

// All SMs in the order in which a kernel's first blocks come to them: one GPC after the other, the
// SMs of a TPC side by side (seen on an H100 with %smid). Without known sides the GPCs are taken in
// pairs, one pair near to each half in turn.
[[nodiscard]] std::vector<SmPlace> sm_order(const gpu::Device& device);

// 2 where the topology names sides or the compute capability is 8.0 or 9.0 (seen on an H100, told
// by NVIDIA of the A100), else 1.
[[nodiscard]] std::uint32_t l2_halves(const gpu::Device& device);

}  // namespace demarc::locality
