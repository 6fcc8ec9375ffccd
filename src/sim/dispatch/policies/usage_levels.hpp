// SMs sorted by use, for machines with one small scheduling resource: sets of SM numbers, one a
// level of use, as bit sets.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "demarc/sim/dispatch_policy.hpp"

namespace demarc::sim {

class UsageLevels {
 public:
  // Levels are worth it, and (use + request) / capacity still tells any two of them apart in single
  // precision.
  static bool apply_to(const Machine& machine) {
    return machine.spec().n_sched == 1 && machine.max(0) <= 4096;
  }

  // Takes in the SMs with use at most `highest`.
  void build(const Machine& machine, std::uint32_t highest) {
    words_ = (machine.sms() + 63) / 64;
    sets_.assign((std::size_t{machine.max(0)} + 1) * words_, 0);
    for (std::uint32_t sm = 0; sm < machine.sms(); ++sm) {
      const std::uint32_t used = machine.used(sm, 0);
      if (used <= highest) add(used, sm);
    }
  }
  void add(std::uint32_t level, std::uint32_t sm) {
    sets_[level * words_ + sm / 64] |= std::uint64_t{1} << (sm % 64);
  }
  void remove(std::uint32_t level, std::uint32_t sm) {
    sets_[level * words_ + sm / 64] &= ~(std::uint64_t{1} << (sm % 64));
  }
  // The lowest SM of a level, or no_sm.
  [[nodiscard]] std::uint32_t first(std::uint32_t level) const {
    for (std::uint32_t w = 0; w < words_; ++w) {
      const std::uint64_t word = sets_[level * words_ + w];
      if (word != 0) return w * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
    }
    return no_sm;
  }

 private:
  std::uint32_t words_ = 0;
  std::vector<std::uint64_t> sets_;  // [level][word]
};

// max over scheduling resources of (used + request) / capacity, in single precision.
[[nodiscard]] inline float fullest_share(const Machine& machine, std::uint32_t sm,
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
