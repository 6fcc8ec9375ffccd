// The number that bfa and dfa rank SMs by.
#pragma once

#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {

// max over scheduling resources of (used + request) / capacity, in single precision.
[[nodiscard]] inline float fullest_share(const Occupancy& machine, SmIndex sm,
                                         const BlockRequest& block) {
  float worst = 0;
  for (std::size_t r = 0; r < machine.spec().n_sched; ++r) {
    const float share =
        static_cast<float>(machine.used(sm, r) + block.sm[r]) / static_cast<float>(machine.max(r));
    if (share > worst) worst = share;
  }
  return worst;
}

}  // namespace demarc::sim
