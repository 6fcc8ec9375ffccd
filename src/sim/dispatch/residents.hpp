// The thread blocks on the SMs and the work they have left. Blocks of one kernel placed on one SM
// in one tick share a state, so memory follows the occupancy, not the workload.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace demarc::sim {

// SMs are taken in tiles of 16: row r of a tile holds the r-th group of each of its SMs, so that
// one tick is a subtraction of the same 16 steps from every row.
class Residents {
 public:
  static constexpr std::uint32_t tile = 16;

  explicit Residents(std::uint32_t n_sms);

  struct Group {
    std::uint32_t kernel;
    std::uint32_t placed_tick;
    std::uint32_t blocks;
  };

  // Values of one row of which those in the bits of `mask` completed.
  struct Hit {
    std::uint32_t tile;
    std::uint32_t row;
    std::uint32_t mask;
  };

  [[nodiscard]] std::uint64_t groups() const { return groups_; }
  [[nodiscard]] bool empty(std::uint32_t sm) const { return count_[sm] == 0; }
  [[nodiscard]] const Group& group(std::uint32_t sm, std::uint32_t row) const {
    return group_[at(sm, row)];
  }
  [[nodiscard]] const std::vector<float>& work() const { return work_; }

  // One block of `kernel` with `work` left, placed in `tick`.
  void add(std::uint32_t sm, std::uint32_t kernel, std::uint32_t tick, float work) {
    const std::uint32_t row = count_[sm];
    if (row > 0) {
      Group& last = group_[at(sm, row - 1)];
      if (last.kernel == kernel && last.placed_tick == tick) {
        ++last.blocks;
        return;
      }
    }
    if (row == rows_) widen();
    const std::size_t i = at(sm, row);
    work_[i] = work;
    group_[i] = {kernel, tick, 1};
    count_[sm] = row + 1;
    // Rows below a filled one are filled, so a new row is the top one.
    if (in_row_[sm / tile * rows_ + row]++ == 0) height_[sm / tile] = row + 1;
    ++groups_;
  }

  // Takes one group out; the last of the SM moves into its place. Within an SM, remove from the
  // highest row down.
  void remove(std::uint32_t sm, std::uint32_t row) {
    const std::uint32_t last_row = --count_[sm];
    if (--in_row_[sm / tile * rows_ + last_row] == 0) height_[sm / tile] = last_row;
    const std::size_t last = at(sm, last_row);
    const std::size_t i = at(sm, row);
    work_[i] = work_[last];
    group_[i] = group_[last];
    work_[last] = nothing;
    --groups_;
  }

  // work -= step[sm] for every group; where that leaves nothing, a hit. Hits come tile by tile,
  // rows rising; they are valid until the next call. `step` is padded to whole tiles.
  [[nodiscard]] const Hit* advance(const float* step, std::size_t& hits);

  [[nodiscard]] static std::size_t padded(std::uint32_t n_sms) {
    return (std::size_t{n_sms} + tile - 1) / tile * tile;
  }

 private:
  static constexpr float nothing = std::numeric_limits<float>::infinity();

  [[nodiscard]] std::size_t at(std::uint32_t sm, std::uint32_t row) const {
    return (std::size_t{sm / tile} * rows_ + row) * tile + sm % tile;
  }
  void widen();

  std::uint32_t tiles_;
  std::uint32_t rows_ = 8;  // room in every tile; grows
  std::uint64_t groups_ = 0;
  std::vector<float> work_;  // [tile][row][SM], `nothing` where there is no group
  std::vector<Group> group_;
  std::vector<std::uint32_t> count_;   // groups of each SM
  std::vector<std::uint32_t> height_;  // rows in use of each tile
  std::vector<std::uint32_t> in_row_;  // groups of each [tile][row]
  std::vector<Hit> hits_;
};

// step[i] = 1 / (1 + (sm_cost[i] + memory_cost)), in single precision; whole tiles.
void compute_steps(const float* sm_cost, float memory_cost, float* step, std::size_t count);

}  // namespace demarc::sim
