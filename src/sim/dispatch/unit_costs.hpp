// What the program of May 2020 charges a thread block for: units in use on its SM, and its own
// share of what the use of the memory costs. IEEE single precision, in that program's order.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim {

class UnitCosts {
 public:
  // invalid_input for a machine that the program does not have: several resources or memories,
  // tables whose rows are no whole units or do not end at the capacity.
  [[nodiscard]] static Result<UnitCosts> make(const TbConfig& config);

  // The first row that is not below `used`; 0 for one unit or none.
  [[nodiscard]] float sm(std::uint32_t used) const;
  // Linear between rows and from (0, 0) to the first; 1 where all of the memory is in use, and
  // beyond, as the program has it.
  [[nodiscard]] float memory(std::uint32_t used) const;

 private:
  struct Row {
    std::uint32_t units;
    float cost;
  };
  static Result<std::vector<Row>> rows_of(const TbConfig& config, const OverheadTable& table,
                                          std::uint32_t capacity, std::string_view name);

  std::vector<Row> sm_, memory_;
};

}  // namespace demarc::sim
