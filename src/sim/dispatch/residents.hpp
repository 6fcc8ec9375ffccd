// The thread blocks on the SMs and the work they have left. Blocks of one kernel placed on one SM
// in one tick share a state, so memory follows the occupancy, not the workload.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace demarc::sim {

// SMs are taken in tiles of 16: row r of a tile holds the r-th group of each of its SMs, so that
// one tick is a subtraction of the same 16 steps from every row. An SM's groups fill its rows from
// the first.
class Residents {
 public:
  static constexpr std::uint32_t tile = 16;

  explicit Residents(std::uint32_t n_sms);

  struct Group {
    std::uint32_t kernel;
    std::uint32_t blocks;
    std::uint32_t placed_tick;
    std::uint32_t sm;
  };

  [[nodiscard]] std::uint64_t groups() const { return groups_; }
  [[nodiscard]] bool empty(std::uint32_t sm) const { return tops_[sm].count == 0; }
  [[nodiscard]] const Group& group(std::uint32_t sm, std::uint32_t row) const {
    return group_[at(sm, row)];
  }
  [[nodiscard]] const std::vector<float>& work() const { return work_; }

  // One block of `kernel` with `work` left on each SM of `sms` in turn, placed in `tick`. `batch`
  // is a number above 0 of its own for each pair of kernel and tick: later blocks of a batch join
  // the group of the earlier one on their SM. Returns how many went to the SM of the block before
  // them in `sms`.
  std::uint64_t add(std::span<const std::uint32_t> sms, std::uint32_t kernel, std::uint32_t tick,
                    std::uint64_t batch, float work);

  // What one tick takes off the work of every block on an SM: 1 / (1 + (cost + memory_cost)) in
  // single precision, with the cost of each SM in sm_cost (padded to whole tiles), or, where
  // `level_cost` is given, level_cost[used[sm] - 1] for uses of 1 to `levels`.
  struct Steps {
    const float* sm_cost = nullptr;
    float memory_cost = 0;
    const float* level_cost = nullptr;
    const std::uint32_t* used = nullptr;
  };
  static constexpr std::uint32_t levels = 8;

  // Takes the steps off; takes out the groups that have nothing left, and returns them, valid until
  // the next call.
  [[nodiscard]] std::span<const Group> advance(const Steps& steps);

  [[nodiscard]] static std::size_t padded(std::uint32_t n_sms) {
    return (std::size_t{n_sms} + tile - 1) / tile * tile;
  }

 private:
  static constexpr float nothing = std::numeric_limits<float>::infinity();

  // The groups of one SM.
  struct Top {
    std::uint64_t batch = 0;  // of the last one
    std::uint32_t count = 0;
  };
  // A row of which the groups in the bits of `mask` completed; bit i is SM `first_sm` + i.
  struct Hit {
    std::uint32_t first_sm;
    std::uint32_t row;
    std::uint32_t mask;
  };
  struct Advance;
  static std::size_t subtract_plain(const Advance& a);
  template <bool by_level>
  static std::size_t subtract_avx2(const Advance& a);

  [[nodiscard]] std::size_t at(std::uint32_t sm, std::uint32_t row) const {
    return (sm - sm % tile) * std::size_t{rows_} + std::size_t{row} * tile + sm % tile;
  }
  void widen();
  void trim();
  std::size_t remove(std::size_t hits);

  std::uint32_t tiles_;
  std::uint32_t rows_ = 8;  // room in every tile; doubles
  std::uint32_t calls_ = 0;
  std::uint64_t groups_ = 0;
  std::vector<float> work_;  // [tile][row][SM], `nothing` where there is no group
  std::vector<Group> group_;
  std::vector<Top> tops_;
  std::vector<std::uint32_t> height_;  // of each tile: rows above hold no group
  std::vector<Hit> hits_;
  std::vector<Group> done_;
};

}  // namespace demarc::sim
