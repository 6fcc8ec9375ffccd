// The thread blocks on the SMs and the work they have left. Blocks of one kernel placed on one SM
// in one tick share a state, so memory follows the occupancy, not the workload.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

// SMs are taken in tiles of 16: row r of a tile holds the r-th group of each of its SMs, so that
// one tick is a subtraction of the same 16 steps from every row. An SM's groups fill its rows from
// the first.
class Residents {
 public:
  static constexpr std::uint32_t tile = 16;

  // `ticks` is for RowResidents: here ticks of placement are remembered anyway.
  explicit Residents(std::uint32_t n_sms, bool ticks = true);

  [[nodiscard]] bool empty() const { return groups_ == 0; }
  // The work left of every group; for a look whether anything moved.
  [[nodiscard]] const std::vector<float>& work() const { return work_; }
  // The kernel of some block on the lowest SM that has one. Only when not empty().
  [[nodiscard]] KernelIndex some_kernel() const;

  // One block of `kernel` with `work` left on each SM of `sms` in turn, placed in `tick`. Returns
  // how many went to the SM of the block before them in `sms`.
  std::uint64_t add(std::span<const SmIndex> sms, KernelIndex kernel, TbTicks tick, float work);

  // What one tick takes off the work of every block on an SM: 1 / (1 + (cost + memory_cost)) in
  // single precision, with the cost of each SM in sm_cost (padded to whole tiles), or, where
  // `level_cost` is given, level_cost[used[sm] - 1]; it has 16 or 64 entries, of which the first
  // max_levels() are read at most.
  struct Steps {
    const float* sm_cost = nullptr;
    float memory_cost = 0;
    std::span<const float> level_cost;
    const std::uint32_t* used = nullptr;
    bool changed = true;  // any of them since the last tick
  };
  // Levels of use that this machine looks up faster than it works out the step of each SM.
  [[nodiscard]] static std::uint32_t max_levels();

  // Takes the steps off. drain() must follow.
  void advance(const Steps& steps);

  // Takes out the blocks that have nothing left and tells visitor.state(kernel, sm, blocks, tick)
  // of each group, `tick` of placement; says whether there were any. `one_by_one` is for
  // RowResidents.
  template <class Visitor>
  bool drain(Visitor& visitor, bool /*one_by_one*/) {
    for (const Group& group : done()) {
      visitor.state(group.kernel, group.sm, group.blocks, group.placed_tick);
    }
    return done_count_ != 0;
  }

  [[nodiscard]] static std::size_t padded(std::uint32_t n_sms) {
    return round_up(std::size_t{n_sms}, tile);
  }

 private:
  struct Group {
    KernelIndex kernel;
    std::uint32_t blocks;
    TbTicks placed_tick;
    SmIndex sm;
  };
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
  template <unsigned level_tables>
  static std::size_t subtract_avx512(const Advance& a);

  [[nodiscard]] std::size_t at(std::uint32_t sm, std::uint32_t row) const {
    return (sm - sm % tile) * std::size_t{rows_} + std::size_t{row} * tile + sm % tile;
  }
  void widen();
  void trim();
  std::size_t remove(std::size_t hits);
  [[nodiscard]] std::span<const Group> done() const { return std::span(done_).first(done_count_); }

  std::uint32_t tiles_;
  std::uint32_t rows_ = 8;  // room in every tile; doubles
  std::uint32_t calls_ = 0;
  std::uint64_t groups_ = 0;
  std::size_t done_count_ = 0;
  // A number of its own for each pair of kernel and tick: later blocks of a batch join the group
  // of the earlier one on their SM.
  std::uint64_t batch_ = 0;
  KernelIndex batch_kernel_ = no_kernel;
  TbTicks batch_tick_;
  std::vector<float> work_;  // [tile][row][SM], `nothing` where there is no group
  std::vector<Group> group_;
  std::vector<Top> tops_;
  std::vector<std::uint32_t> height_;  // per tile: rows above hold no group
  std::vector<Hit> hits_;
  std::vector<Group> done_;
};

}  // namespace demarc::sim
