// Overhead that the use of one SM's resources, or of the memories, puts on every block there.
#pragma once

#include <span>
#include <vector>

#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim {

// One column of an OverheadTable with the slope of each segment worked out. cost(x) is bit for bit
// that of the table.
class CostCurve {
 public:
  CostCurve(const OverheadTable& table, std::size_t column);

  [[nodiscard]] float cost(float ratio) const {
    if (ends_.empty()) return 0.0F;
    std::size_t segment = 0;
    while (segment + 1 < ends_.size() && ratio > ends_[segment]) ++segment;
    const Segment& s = segments_[segment];
    return s.slope * (ratio - s.x0) + s.y0;
  }

 private:
  struct Segment {
    float x0, y0, slope;
  };
  std::vector<float> ends_;        // ratio of each row, rising
  std::vector<Segment> segments_;  // one per row; the last goes on beyond its end
};

class OverheadModel {
 public:
  explicit OverheadModel(const TbConfig& config);

  // Sum over scheduling resources, plus the maximum over compute units, plus the maximum over other
  // units; a resource not in use costs nothing.
  [[nodiscard]] float sm_cost(const std::uint32_t* used) const;
  // The same as a function to be kept in a loop. `one`: there is a single resource.
  template <bool one>
  [[nodiscard]] auto pricer() const {
    return [this, known = known_[0].data(), end = known_[0].size()](const std::uint32_t* used) {
      if (!one) return sm_cost(used);
      return *used < end ? known[*used] : compute(0, *used);
    };
  }
  // Sum over memories. NaN where the table divides by zero.
  [[nodiscard]] float memory_cost(std::span<const std::uint32_t> used) const {
    float sum = 0;
    for (std::size_t m = 0; m < used.size(); ++m) {
      sum += memory_curves_[m].cost(static_cast<float>(used[m]) /
                                    static_cast<float>(config_->memory[m]));
    }
    return sum;
  }

 private:
  [[nodiscard]] float unit_cost(std::size_t resource, std::uint32_t used) const {
    const std::vector<float>& known = known_[resource];
    if (used < known.size()) return known[used];
    return compute(resource, used);
  }
  [[nodiscard]] float compute(std::size_t resource, std::uint32_t used) const;

  const TbConfig* config_;
  std::vector<std::vector<float>> known_;  // costs of small uses, a resource each
  std::vector<CostCurve> memory_curves_;
};

}  // namespace demarc::sim
