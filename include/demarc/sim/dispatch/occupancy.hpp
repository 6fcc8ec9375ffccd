// How much of every SM is in use: what a dispatch policy asks before it chooses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/sim/dispatch/tb_config.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

// The thread block to place. Blocks of a kernel are alike. All of them are placed before those of
// another kernel, in index order if the policy has no order of its own.
struct BlockRequest {
  std::span<const std::uint32_t> sm;  // request of each SM resource
  KernelIndex kernel;
  BlockNumber block;         // the first one asked for: how many were placed
  std::uint32_t blocks = 0;  // how many the kernel has
};

// Arithmetic is unsigned 32-bit, as in the published program.
class Occupancy {
 public:
  [[nodiscard]] const SmSpec& spec() const { return spec_; }
  [[nodiscard]] std::uint32_t sms() const { return spec_.n_sms; }
  [[nodiscard]] std::size_t resources() const { return resources_; }
  [[nodiscard]] std::uint32_t max(std::size_t resource) const { return spec_.max[resource]; }
  [[nodiscard]] std::uint32_t used(SmIndex sm, std::size_t resource) const {
    return used_[sm.raw() * resources_ + resource];
  }
  // Units over all SMs.
  [[nodiscard]] std::uint64_t total(std::size_t resource) const { return total_[resource]; }
  [[nodiscard]] std::uint64_t capacity(std::size_t resource) const {
    return std::uint64_t{spec_.n_sms} * spec_.max[resource];
  }
  // Scheduling resources decide; the others may pass their capacity.
  [[nodiscard]] bool fits(SmIndex sm, const BlockRequest& block) const {
    const std::uint32_t* used = used_.data() + sm.raw() * resources_;
    for (std::size_t r = 0; r < spec_.n_sched; ++r) {
      if (used[r] + block.sm[r] > spec_.max[r]) return false;
    }
    return true;
  }

 protected:
  explicit Occupancy(SmSpec spec);

  SmSpec spec_;
  std::size_t resources_;
  std::vector<std::uint32_t> used_;  // [sm][resource]
  std::vector<std::uint64_t> total_;
};

}  // namespace demarc::sim
