// Charges thread blocks for units in use, in single precision as the program of May 2020.
#include "dispatch/unit_costs.hpp"

#include <cmath>

namespace demarc::sim {

Result<UnitCosts> UnitCosts::make(const TbConfig& config) {
  if (config.resources() != 1 || config.memory.size() != 1) {
    return invalid_input(
        "{}: {} SM resources and {} memories: the program of 2020 (simtbs-2020) has one of each; "
        "use another --model",
        config.source, config.resources(), config.memory.size());
  }
  UnitCosts costs;
  DEMARC_TRY(costs.sm_, rows_of(config, config.sm_overhead, config.sm.max[0], "overhead_sm"));
  DEMARC_TRY(costs.memory_,
             rows_of(config, config.memory_overhead, config.memory[0], "overhead_mem"));
  return costs;
}

Result<std::vector<UnitCosts::Row>> UnitCosts::rows_of(const TbConfig& config,
                                                       const OverheadTable& table,
                                                       std::uint32_t capacity,
                                                       std::string_view name) {
  if (capacity >= max_units_of_2020) {
    return invalid_input("{}: a capacity of {} units: simtbs-2020 takes fewer than {}",
                         config.source, capacity, max_units_of_2020);
  }
  std::vector<Row> rows;
  for (const OverheadTable::Row& row : table.rows) {
    const std::uint32_t units = row_units(row, capacity);
    constexpr double rounding = 0x1p-23;  // of a single-precision ratio, relative
    if (units < 2 || std::abs(double{row.ratio} * capacity - units) > rounding * units) {
      return invalid_input(
          "{}:{}: a row at {} of {} units: the program of 2020 (simtbs-2020) has rows at whole "
          "units, 2 or more; use another --model",
          config.source, row.line, row.ratio, capacity);
    }
    rows.push_back({units, row.cost[0]});
  }
  if (rows.empty() || rows.back().units != capacity) {
    return invalid_input(
        "{}: *{} does not end with a row at all {} units, which the program of 2020 (simtbs-2020) "
        "needs",
        config.source, name, capacity);
  }
  return rows;
}

float UnitCosts::sm(std::uint32_t used) const {
  if (used <= 1) return 0;
  for (const Row& row : sm_) {
    if (used <= row.units) return row.cost;
  }
  return 1;
}

float UnitCosts::memory(std::uint32_t used) const {
  Row before{0, 0};
  for (const Row& row : memory_) {
    if (used < row.units) {
      return (row.cost - before.cost) / static_cast<float>(row.units - before.units) *
                 static_cast<float>(used - before.units) +
             before.cost;
    }
    before = row;
  }
  return 1;
}

}  // namespace demarc::sim
