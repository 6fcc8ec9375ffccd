// Residents for policies that place a kernel's blocks on one SM after the other.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "dispatch/residents.hpp"

namespace demarc::sim {

// As Residents, but a row of a tile holds blocks of one kernel, at most one state an SM: the blocks
// of a run go in and out together. Rows of blocks placed here and there would be nearly empty.
class RowResidents {
 public:
  static constexpr std::uint32_t tile = Residents::tile;

  // `ticks`: remember in which tick each block was placed.
  RowResidents(std::uint32_t n_sms, bool ticks);

  [[nodiscard]] bool empty() const { return live_rows_ == 0; }

  // One block of `kernel` with `work` left on each SM of `sms` in turn, placed in `tick`. Returns
  // how many went to the SM of the block before them in `sms`.
  std::uint64_t add(std::span<const SmIndex> sms, KernelIndex kernel, TbTicks tick, float work);

  using Steps = Residents::Steps;

  // Takes the steps off. drain() must follow.
  void advance(const Steps& steps);

  // Takes out the blocks that have nothing left; says whether there were any. Tells
  //   visitor.row(kernel, first_sm, mask): one block completed on each SM first_sm + i, i in the
  //     bits of `mask`; not where `one_by_one`;
  //   visitor.state(kernel, sm, blocks, tick): blocks of one state, `tick` of placement (0 when
  //     ticks are not remembered).
  template <class Visitor>
  bool drain(Visitor& visitor, bool one_by_one) {
    const std::size_t hits = hit_count_;
    for (std::size_t h = 0; h < hits; ++h) {
      const Hit hit = hits_[h];
      const Row& row = row_[hit.row];
      Lanes& lanes = lanes_[hit.row];
      const std::uint32_t first_sm = lanes.tile * tile;
      std::uint32_t left = hit.mask;
      if (!one_by_one && (hit.mask & row.several) == 0) [[likely]] {
        visitor.row(row.kernel, SmIndex(first_sm), hit.mask);
        left = 0;
      }
      for (; left != 0; left &= left - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
        const std::size_t at = std::size_t{hit.row} * tile + lane;
        visitor.state(row.kernel, SmIndex(first_sm + lane),
                      (row.several >> lane & 1U) != 0 ? blocks_[at] : 1,
                      ticks_.empty() ? 0_ticks : ticks_[at]);
      }
      lanes.live = static_cast<std::uint16_t>(lanes.live & ~hit.mask);
      const std::uint32_t dead = lanes.live == 0 ? 1 : 0;
      live_rows_ -= dead;
      free_[hit.row / 64] |= std::uint64_t{dead} << (hit.row % 64);
    }
    return hits != 0;
  }

  // The work left of every state; for a look whether anything moved.
  [[nodiscard]] std::vector<float> work() const;
  // The kernel of some block on the lowest SM that has one. Only when not empty().
  [[nodiscard]] KernelIndex some_kernel() const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Row {
    KernelIndex kernel = no_kernel;
    TbTicks tick;               // tick of the last addition
    std::uint16_t fresh = 0;    // lanes added in `tick`
    std::uint16_t several = 0;  // lanes of more than one block
  };
  struct Lanes {
    std::uint16_t live = 0;  // lanes that hold a state
    std::uint16_t tile = 0;
  };
  // A row of which the states in the bits of `mask` completed.
  struct Hit {
    std::uint32_t row;
    std::uint32_t mask;
  };
  struct Advance;
  static std::size_t subtract_plain(const Advance& a);
  static std::size_t subtract_avx2(const Advance& a);
  template <unsigned level_tables>
  static void steps_avx512(const Advance& a);
  static std::size_t subtract_avx512(const Advance& a);

  struct Batch {
    KernelIndex kernel;
    TbTicks tick;
    float work;
  };
  // `blocks` blocks on each SM in `mask` of one tile.
  void put(std::uint32_t tile, std::uint32_t mask, std::uint32_t blocks, const Batch& batch);
  void put_run(std::uint32_t first, std::uint32_t count, const Batch& batch);
  void put_masks(const Batch& batch);
  void put_runs(std::span<const SmIndex> sms, const Batch& batch);
  std::uint32_t take_row();
  void resize(std::size_t rows);
  void trim();

  bool remembers_ticks_;
  std::size_t (*subtract_)(const Advance& a) = &subtract_plain;
  std::size_t rows_ = 0;  // all from here on are free
  std::size_t live_rows_ = 0;
  std::uint32_t calls_ = 0;
  std::size_t hit_count_ = 0;
  std::vector<std::uint64_t> free_;    // bits of the rows below rows_ without a live lane
  std::vector<std::uint32_t> open_;    // per tile: the row that took its last blocks
  std::vector<float> steps_;           // per SM, this tick
  std::vector<float> work_;            // [row][lane]; anything in lanes that are not live
  std::vector<std::uint32_t> blocks_;  // [row][lane], of lanes in `several`
  std::vector<TbTicks> ticks_;         // [row][lane], or empty
  std::vector<Row> row_;
  std::vector<Lanes> lanes_;  // per row
  std::vector<Hit> hits_;
  std::vector<std::uint16_t> mask_;     // per tile, all 0 between calls
  std::vector<std::uint64_t> touched_;  // bits of the tiles with one
};

}  // namespace demarc::sim
