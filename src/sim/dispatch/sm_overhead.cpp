// Computes the overhead that the use of an SM and of the memories puts on each block.
#include "dispatch/sm_overhead.hpp"

#include <algorithm>

namespace demarc::sim {

CostCurve::CostCurve(const OverheadTable& table, std::size_t column) {
  float x0 = 0;
  float y0 = 0;
  for (const OverheadTable::Row& row : table.rows) {
    const float x1 = row.ratio;
    const float y1 = row.cost[column];
    ends_.push_back(x1);
    segments_.push_back({x0, y0, (y1 - y0) / (x1 - x0)});
    x0 = x1;
    y0 = y1;
  }
}

OverheadModel::OverheadModel(const TbConfig& config)
    : config_(&config), known_(config.resources()) {
  constexpr std::uint32_t max_known = 2048;
  for (std::size_t r = 0; r < known_.size(); ++r) {
    known_[r].resize(std::min(config.sm.max[r], max_known) + std::size_t{1});
    for (std::uint32_t used = 1; used < known_[r].size(); ++used) {
      known_[r][used] = compute(r, used);
    }
  }
  for (std::size_t m = 0; m < config.memory.size(); ++m) {
    memory_curves_.emplace_back(config.memory_overhead, m);
  }
}

float OverheadModel::compute(std::size_t resource, std::uint32_t used) const {
  return config_->sm_overhead.cost(
      resource, static_cast<float>(used) / static_cast<float>(config_->sm.max[resource]));
}

float OverheadModel::sm_cost(const std::uint32_t* used) const {
  float sum = 0;
  for (std::size_t r = 0; r < config_->sm.n_sched; ++r) sum += unit_cost(r, used[r]);
  float compute_units = 0;
  for (std::size_t r = config_->sm.n_sched; r < config_->sm.n_boundary; ++r) {
    compute_units = std::max(compute_units, unit_cost(r, used[r]));
  }
  sum += compute_units;
  float others = 0;
  for (std::size_t r = config_->sm.n_boundary; r < config_->resources(); ++r) {
    others = std::max(others, unit_cost(r, used[r]));
  }
  return sum + others;
}

}  // namespace demarc::sim
