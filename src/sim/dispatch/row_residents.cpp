// Keeps the work left to blocks that fill one SM after the other, in one row per kernel.
#include "dispatch/row_residents.hpp"

#include <algorithm>
#include <bit>

#include "dispatch/lanes.hpp"
#include "dispatch/vector_steps.hpp"

namespace demarc::sim {

struct RowResidents::Advance {
  Steps cost;
  std::size_t tiles;  // to work out the steps of
  float* step;        // per SM
  std::size_t rows;
  float* work;
  const Lanes* lanes;
  Hit* hits;
};

std::size_t RowResidents::subtract_plain(const Advance& a) {
  const Steps& s = a.cost;
  for (std::size_t sm = 0; sm < a.tiles * tile; ++sm) {
    const float cost =
        s.level_cost.empty() ? s.sm_cost[sm] : s.level_cost[(s.used[sm] - 1) % s.level_cost.size()];
    a.step[sm] = 1.0F / (1.0F + (cost + s.memory_cost));
  }
  std::size_t hits = 0;
  for (std::size_t row = 0; row < a.rows; ++row) {
    const float* step = a.step + std::size_t{a.lanes[row].tile} * tile;
    float* work = a.work + row * tile;
    std::uint32_t mask = 0;
    for (std::uint32_t i = 0; i < tile; ++i) {
      work[i] -= step[i];
      mask |= static_cast<std::uint32_t>(work[i] <= 0.0F) << i;
    }
    mask &= a.lanes[row].live;
    a.hits[hits] = {static_cast<std::uint32_t>(row), mask};
    hits += mask != 0 ? 1U : 0U;
  }
  return hits;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) std::size_t RowResidents::subtract_avx2(const Advance& a) {
  const __m256 zero = _mm256_setzero_ps();
  const __m256 memory_cost = _mm256_set1_ps(a.cost.memory_cost);
  float* const steps = a.step;
  const std::size_t sms = a.tiles * tile;
  if (!a.cost.level_cost.empty()) {
    const __m256 by_level = avx2_step(a.cost.level_cost.data(), memory_cost);
    const std::uint32_t* const used = a.cost.used;
    for (std::size_t sm = 0; sm < sms; sm += 8) {
      const __m256i uses = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(used + sm));
      const __m256i level = _mm256_sub_epi32(uses, _mm256_set1_epi32(1));
      _mm256_storeu_ps(steps + sm, _mm256_permutevar8x32_ps(by_level, level));
    }
  } else {
    const float* const cost = a.cost.sm_cost;
    for (std::size_t sm = 0; sm < sms; sm += 8) {
      _mm256_storeu_ps(steps + sm, avx2_step(cost + sm, memory_cost));
    }
  }
  float* work = a.work;
  const Lanes* const lanes = a.lanes;
  const std::size_t rows = a.rows;
  Hit* hit = a.hits;
  for (std::size_t row = 0; row < rows; ++row, work += tile) {
    const float* step = steps + std::size_t{lanes[row].tile} * tile;
    const __m256 low = _mm256_sub_ps(_mm256_loadu_ps(work), _mm256_loadu_ps(step));
    const __m256 high = _mm256_sub_ps(_mm256_loadu_ps(work + 8), _mm256_loadu_ps(step + 8));
    _mm256_storeu_ps(work, low);
    _mm256_storeu_ps(work + 8, high);
    const int low_mask = _mm256_movemask_ps(_mm256_cmp_ps(low, zero, _CMP_LE_OQ));
    const int high_mask = _mm256_movemask_ps(_mm256_cmp_ps(high, zero, _CMP_LE_OQ));
    const std::uint32_t mask =
        static_cast<std::uint32_t>(low_mask | (high_mask << 8)) & lanes[row].live;
    *hit = {static_cast<std::uint32_t>(row), mask};
    hit += mask != 0 ? 1 : 0;
  }
  return static_cast<std::size_t>(hit - a.hits);
}

// `level_tables`: sixteens of levels to look up, or 0.
template <unsigned level_tables>
__attribute__((target("avx512f"))) void RowResidents::steps_avx512(const Advance& a) {
  const __m512 memory_cost = _mm512_set1_ps(a.cost.memory_cost);
  const Avx512LevelSteps<level_tables> level_steps(a.cost.level_cost.data(), memory_cost);
  for (std::size_t sm = 0; sm < a.tiles * tile; sm += tile) {
    __m512 step;
    if constexpr (level_tables != 0) {
      step = level_steps.of(a.cost.used + sm);
    } else {
      step = avx512_step(_mm512_loadu_ps(a.cost.sm_cost + sm), memory_cost);
    }
    _mm512_storeu_ps(a.step + sm, step);
  }
}

__attribute__((target("avx512f"))) std::size_t RowResidents::subtract_avx512(const Advance& a) {
  const std::size_t levels = a.cost.level_cost.size();
  if (a.tiles != 0) {
    levels == 0 ? steps_avx512<0>(a) : levels == 16 ? steps_avx512<1>(a) : steps_avx512<4>(a);
  }
  const __m512 zero = _mm512_setzero_ps();
  const float* const steps = a.step;
  float* work = a.work;
  const Lanes* const lanes = a.lanes;
  const std::size_t rows = a.rows;
  Hit* hit = a.hits;
  for (std::size_t row = 0; row < rows; ++row, work += tile) {
    const __m512 left = _mm512_sub_ps(_mm512_loadu_ps(work),
                                      _mm512_loadu_ps(steps + std::size_t{lanes[row].tile} * tile));
    _mm512_storeu_ps(work, left);
    const std::uint32_t mask = _mm512_mask_cmp_ps_mask(lanes[row].live, left, zero, _CMP_LE_OQ);
    *hit = {static_cast<std::uint32_t>(row), mask};
    hit += mask != 0 ? 1 : 0;
  }
  return static_cast<std::size_t>(hit - a.hits);
}
#endif

void RowResidents::advance(const Steps& steps) {
  constexpr std::uint32_t trim_every = 16;
  if (++calls_ % trim_every == 0) trim();
  // steps_ still holds what did not change.
  const Advance args{steps,         steps.changed ? open_.size() : 0,
                     steps_.data(), rows_,
                     work_.data(),  lanes_.data(),
                     hits_.data()};
  hit_count_ = subtract_(args);
}

RowResidents::RowResidents(std::uint32_t n_sms, bool ticks)
    : remembers_ticks_(ticks),
      open_(Residents::padded(n_sms) / tile, none),
      steps_(Residents::padded(n_sms)),
      mask_(open_.size()),
      touched_(open_.size() / 64 + 1) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) subtract_ = &subtract_avx2;
  if (__builtin_cpu_supports("avx512f") != 0) subtract_ = &subtract_avx512;
#endif
  constexpr std::size_t first_rows = 64;
  resize(first_rows);
}

void RowResidents::resize(std::size_t rows) {
  work_.resize(rows * tile);
  blocks_.resize(rows * tile);
  if (remembers_ticks_) ticks_.resize(rows * tile);
  row_.resize(rows);
  lanes_.resize(rows);
  hits_.resize(rows + 1);
  free_.resize(rows / 64);
}

std::uint32_t RowResidents::take_row() {
  ++live_rows_;
  for (std::size_t w = 0; w * 64 < rows_; ++w) {
    if (free_[w] == 0) continue;
    const auto bit = static_cast<std::uint32_t>(std::countr_zero(free_[w]));
    free_[w] &= free_[w] - 1;
    return static_cast<std::uint32_t>(w * 64) + bit;
  }
  if (rows_ == row_.size()) resize(row_.size() * 2);
  return static_cast<std::uint32_t>(rows_++);
}

// Free rows are taken from the front, so the last ones fall out of use when the load falls.
void RowResidents::trim() {
  for (; rows_ > 0 && (free_[(rows_ - 1) / 64] >> ((rows_ - 1) % 64) & 1U) != 0; --rows_) {
    free_[(rows_ - 1) / 64] &= ~(std::uint64_t{1} << ((rows_ - 1) % 64));
  }
}

void RowResidents::put(std::uint32_t t, std::uint32_t mask, std::uint32_t blocks,
                       const Batch& batch) {
  std::uint32_t at = open_[t];
  // The row may have been freed, and taken for another tile, since.
  bool open =
      at != none && row_[at].kernel == batch.kernel && lanes_[at].tile == t && lanes_[at].live != 0;
  if (open) {
    Row& row = row_[at];
    if (row.tick != batch.tick) {
      row.tick = batch.tick;
      row.fresh = 0;
    }
    for (std::uint32_t again = mask & row.fresh; again != 0; again &= again - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(again));
      std::uint32_t& count = blocks_[std::size_t{at} * tile + lane];
      count = ((row.several >> lane & 1U) != 0 ? count : 1) + blocks;
    }
    row.several = static_cast<std::uint16_t>(row.several | (mask & row.fresh));
    mask &= ~std::uint32_t{row.fresh};
    // Lanes in use by earlier blocks need another row.
    open = (lanes_[at].live & mask) == 0;
  }
  if (open) {
    set_in(work_.data() + std::size_t{at} * tile, mask, batch.work);
  } else {
    at = take_row();
    open_[t] = at;
    row_[at] = {batch.kernel, batch.tick, 0, 0};
    lanes_[at] = {0, static_cast<std::uint16_t>(t)};
    std::fill_n(work_.data() + std::size_t{at} * tile, tile, batch.work);
  }
  Row& row = row_[at];
  lanes_[at].live = static_cast<std::uint16_t>(lanes_[at].live | mask);
  row.fresh = static_cast<std::uint16_t>(row.fresh | mask);
  row.several = static_cast<std::uint16_t>(blocks > 1 ? row.several | mask : row.several & ~mask);
  if (blocks == 1 && ticks_.empty()) return;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const std::size_t i =
        std::size_t{at} * tile + static_cast<std::uint32_t>(std::countr_zero(left));
    blocks_[i] = blocks;
    if (!ticks_.empty()) ticks_[i] = batch.tick;
  }
}

std::uint64_t RowResidents::add(std::span<const SmIndex> sms, KernelIndex kernel, TbTicks tick,
                                float work) {
  const Batch batch{kernel, tick, work};
  std::size_t run = 0;
  while (run < sms.size() && sms[run] == sms[0] + static_cast<std::uint32_t>(run)) ++run;
  if (run == sms.size() || run >= tile) {
    put_run(sms[0].raw(), static_cast<std::uint32_t>(run), batch);
    return run == sms.size() ? 0 : add(sms.subspan(run), kernel, tick, work);
  }
  std::uint64_t together = 0;
  for (std::size_t i = 1; i < sms.size(); ++i) together += sms[i] == sms[i - 1] ? 1U : 0U;
  if (together != 0) {
    put_runs(sms, batch);
    return together;
  }
  for (const SmIndex sm : sms) {
    const std::uint32_t t = sm.raw() / tile;
    const std::uint32_t bit = 1U << (sm.raw() % tile);
    if ((mask_[t] & bit) != 0) [[unlikely]] {
      put_masks(batch);
    }
    mask_[t] = static_cast<std::uint16_t>(mask_[t] | bit);
    touched_[t / 64] |= std::uint64_t{1} << (t % 64);
  }
  put_masks(batch);
  return 0;
}

// One block on each of `count` SMs from `first` on.
void RowResidents::put_run(std::uint32_t first, std::uint32_t count, const Batch& batch) {
  const std::uint32_t end = first + count;
  for (std::uint32_t t = first / tile; t * tile < end; ++t) {
    const std::uint32_t from = std::max(first, t * tile) % tile;
    const std::uint32_t to = std::min(end - t * tile, tile);
    put(t, ((1U << to) - 1) & ~((1U << from) - 1), 1, batch);
  }
}

void RowResidents::put_masks(const Batch& batch) {
  for (std::size_t w = 0; w < touched_.size(); ++w) {
    for (; touched_[w] != 0; touched_[w] &= touched_[w] - 1) {
      const std::size_t t = w * 64 + static_cast<std::size_t>(std::countr_zero(touched_[w]));
      put(static_cast<std::uint32_t>(t), mask_[t], 1, batch);
      mask_[t] = 0;
    }
  }
}

// Runs of blocks on one SM, one after the other.
void RowResidents::put_runs(std::span<const SmIndex> sms, const Batch& batch) {
  for (std::size_t i = 0; i < sms.size();) {
    std::size_t end = i + 1;
    while (end < sms.size() && sms[end] == sms[i]) ++end;
    put(sms[i].raw() / tile, 1U << (sms[i].raw() % tile), static_cast<std::uint32_t>(end - i),
        batch);
    i = end;
  }
}

std::vector<float> RowResidents::work() const {
  std::vector<float> all;
  for (std::size_t row = 0; row < rows_; ++row) {
    for (std::uint32_t i = 0; i < tile; ++i) {
      if ((lanes_[row].live >> i & 1U) != 0) all.push_back(work_[row * tile + i]);
    }
  }
  return all;
}

KernelIndex RowResidents::some_kernel() const {
  SmIndex lowest = no_sm;
  KernelIndex kernel;
  for (std::size_t row = 0; row < rows_; ++row) {
    if (lanes_[row].live == 0) continue;
    const SmIndex sm(lanes_[row].tile * tile +
                     static_cast<std::uint32_t>(std::countr_zero(lanes_[row].live)));
    if (sm >= lowest) continue;
    lowest = sm;
    kernel = row_[row].kernel;
  }
  return kernel;
}

}  // namespace demarc::sim
