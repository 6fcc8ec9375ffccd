// Overhead that the use of one SM's resources, or of the memories, puts on every block there.
#pragma once

#include <span>
#include <vector>

#include "demarc/sim/tb_config.hpp"

namespace demarc::sim {

class OverheadModel {
 public:
  explicit OverheadModel(const TbConfig& config);

  // Sum over scheduling resources, plus the maximum over compute units, plus the maximum over other
  // units; a resource not in use costs nothing. `one`: there is a single resource.
  template <bool one = false>
  [[nodiscard]] float sm_cost(const std::uint32_t* used) const {
    if (one) return unit_cost(0, used[0]);
    return full_sm_cost(used);
  }
  // Sum over memories. NaN where the table divides by zero.
  [[nodiscard]] float memory_cost(std::span<const std::uint32_t> used) const;

 private:
  [[nodiscard]] float full_sm_cost(const std::uint32_t* used) const;
  [[nodiscard]] float unit_cost(std::size_t resource, std::uint32_t used) const {
    if (used == 0) return 0.0F;
    const std::vector<float>& known = known_[resource];
    if (used < known.size()) return known[used];
    return compute(resource, used);
  }
  [[nodiscard]] float compute(std::size_t resource, std::uint32_t used) const;

  const TbConfig* config_;
  std::vector<std::vector<float>> known_;  // costs of small uses, a resource each
};

}  // namespace demarc::sim
