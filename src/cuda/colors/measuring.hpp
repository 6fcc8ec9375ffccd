// How slices are told apart by latencies, in this room: as in the probe.
#pragma once

#include <vector>

#include "demarc/cuda/gpu.hpp"

namespace demarc::cuda {

inline constexpr std::uint32_t sms_measuring_together = 8;  // they do not disturb each other
inline constexpr std::uint32_t hit_repeats = 4;

// 24 SMs spread over the card, or all it has.
[[nodiscard]] std::vector<std::uint32_t> measuring_sms(const Gpu& gpu);

}  // namespace demarc::cuda
