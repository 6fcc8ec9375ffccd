// How long a kernel takes on a part of a card, from what its caches pass on. Each of the SMs, the
// L2 and the DRAM needs its own time for it; the slowest decides. Arithmetic is left out.
#pragma once

#include "demarc/device/device.hpp"
#include "demarc/locality/predict.hpp"

namespace demarc::locality {

// What the kernel may use of a card.
struct CardShare {
  double sms = 1;
  double memory = 1;  // of the bandwidths of L2 and DRAM
};

// In seconds, of one launch.
struct KernelTime {
  double sms_s = 0;   // latencies, L1, links, lines on their way
  double l2_s = 0;    // 0: how much it delivers is not known
  double dram_s = 0;  // 0: its bandwidth is not known
  double all_s = 0;   // the longest of them, and what every launch takes
};

[[nodiscard]] KernelTime kernel_time(const CachePrediction& prediction, const gpu::Device& device,
                                     const CardShare& share);

// Cycles until an answer comes, where the description does not tell.
inline constexpr double typical_l1_latency = 35;
inline constexpr double typical_l2_latency = 270;
inline constexpr double typical_dram_latency = 650;

[[nodiscard]] inline double or_typical(double cycles, double typical) {
  return cycles > 0 ? cycles : typical;
}

}  // namespace demarc::locality
