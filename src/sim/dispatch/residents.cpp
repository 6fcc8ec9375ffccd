// Keeps the work left to the blocks on the SMs and subtracts a tick from all at once.
#include "dispatch/residents.hpp"

#include <algorithm>
#include <bit>

#include "dispatch/vector_steps.hpp"

namespace demarc::sim {

struct Residents::Advance {
  float* work;
  Steps steps;
  const std::uint32_t* height;
  std::uint32_t tiles, rows;
  Hit* hits;
};

std::size_t Residents::subtract_plain(const Advance& a) {
  const Steps& s = a.steps;
  std::size_t hits = 0;
  for (std::uint32_t t = 0; t < a.tiles; ++t) {
    float step[tile];
    for (std::uint32_t i = 0; i < tile; ++i) {
      const std::uint32_t sm = t * tile + i;
      const float cost = s.level_cost.empty()
                             ? s.sm_cost[sm]
                             : s.level_cost[(s.used[sm] - 1) % s.level_cost.size()];
      step[i] = 1.0F / (1.0F + (cost + s.memory_cost));
    }
    for (std::uint32_t row = 0; row < a.height[t]; ++row) {
      float* work = a.work + (std::size_t{t} * a.rows + row) * tile;
      std::uint32_t mask = 0;
      for (std::uint32_t i = 0; i < tile; ++i) {
        work[i] -= step[i];
        mask |= static_cast<std::uint32_t>(work[i] <= 0.0F) << i;
      }
      a.hits[hits] = {t * tile, row, mask};
      hits += mask != 0 ? 1U : 0U;
    }
  }
  return hits;
}

#if defined(__x86_64__)
namespace {

// Among the eight steps the one of each SM's use.
__attribute__((target("avx2"))) inline __m256 avx2_pick(__m256 steps, const std::uint32_t* used) {
  const __m256i uses = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(used));
  return _mm256_permutevar8x32_ps(steps, _mm256_sub_epi32(uses, _mm256_set1_epi32(1)));
}

}  // namespace

template <bool by_level>
__attribute__((target("avx2"))) std::size_t Residents::subtract_avx2(const Advance& a) {
  const __m256 zero = _mm256_setzero_ps();
  const __m256 memory_cost = _mm256_set1_ps(a.steps.memory_cost);
  const __m256 level_steps = by_level ? avx2_step(a.steps.level_cost.data(), memory_cost) : zero;
  const std::uint32_t* const heights = a.height;
  const std::uint32_t tiles = a.tiles;
  const std::size_t stride = std::size_t{a.rows} * tile;
  Hit* hit = a.hits;
  for (std::uint32_t t = 0; t < tiles; ++t) {
    __m256 low_step;
    __m256 high_step;
    if (by_level) {
      const std::uint32_t* used = a.steps.used + std::size_t{t} * tile;
      low_step = avx2_pick(level_steps, used);
      high_step = avx2_pick(level_steps, used + 8);
    } else {
      const float* cost = a.steps.sm_cost + std::size_t{t} * tile;
      low_step = avx2_step(cost, memory_cost);
      high_step = avx2_step(cost + 8, memory_cost);
    }
    float* work = a.work + t * stride;
    for (std::uint32_t row = 0; row < heights[t]; ++row, work += tile) {
      const __m256 low = _mm256_sub_ps(_mm256_loadu_ps(work), low_step);
      const __m256 high = _mm256_sub_ps(_mm256_loadu_ps(work + 8), high_step);
      _mm256_storeu_ps(work, low);
      _mm256_storeu_ps(work + 8, high);
      const int low_mask = _mm256_movemask_ps(_mm256_cmp_ps(low, zero, _CMP_LE_OQ));
      const int high_mask = _mm256_movemask_ps(_mm256_cmp_ps(high, zero, _CMP_LE_OQ));
      const auto mask = static_cast<std::uint32_t>(low_mask | (high_mask << 8));
      *hit = {t * tile, row, mask};
      hit += mask != 0 ? 1 : 0;
    }
  }
  return static_cast<std::size_t>(hit - a.hits);
}

// `level_tables`: sixteens of levels to look up, or 0.
template <unsigned level_tables>
__attribute__((target("avx512f"))) std::size_t Residents::subtract_avx512(const Advance& a) {
  const __m512 zero = _mm512_setzero_ps();
  const __m512 memory_cost = _mm512_set1_ps(a.steps.memory_cost);
  const Avx512LevelSteps<level_tables> level_steps(a.steps.level_cost.data(), memory_cost);
  const std::uint32_t* const heights = a.height;
  const std::uint32_t tiles = a.tiles;
  const std::size_t stride = std::size_t{a.rows} * tile;
  float* const works = a.work;
  Hit* hit = a.hits;
  for (std::uint32_t t = 0; t < tiles; ++t) {
    __m512 step;
    if constexpr (level_tables != 0) {
      step = level_steps.of(a.steps.used + std::size_t{t} * tile);
    } else {
      step = avx512_step(_mm512_loadu_ps(a.steps.sm_cost + std::size_t{t} * tile), memory_cost);
    }
    float* work = works + t * stride;
    for (std::uint32_t row = 0; row < heights[t]; ++row, work += tile) {
      const __m512 left = _mm512_sub_ps(_mm512_loadu_ps(work), step);
      _mm512_storeu_ps(work, left);
      const std::uint32_t mask = _mm512_cmp_ps_mask(left, zero, _CMP_LE_OQ);
      *hit = {t * tile, row, mask};
      hit += mask != 0 ? 1 : 0;
    }
  }
  return static_cast<std::size_t>(hit - a.hits);
}
#endif

std::uint32_t Residents::max_levels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return 64;
#endif
  return 8;
}

Residents::Residents(std::uint32_t n_sms, bool /*ticks*/)
    : tiles_(static_cast<std::uint32_t>(padded(n_sms) / tile)),
      work_(padded(n_sms) * rows_, nothing),
      group_(work_.size()),
      tops_(padded(n_sms)),
      height_(tiles_),
      hits_(std::size_t{tiles_} * rows_ + 1),
      done_(work_.size()) {}

void Residents::widen() {
  const std::uint32_t wider = rows_ * 2;
  std::vector<float> work(std::size_t{tiles_} * wider * tile, nothing);
  std::vector<Group> group(work.size());
  for (std::size_t t = 0; t < tiles_; ++t) {
    for (std::size_t i = 0; i < std::size_t{rows_} * tile; ++i) {
      work[t * wider * tile + i] = work_[t * rows_ * tile + i];
      group[t * wider * tile + i] = group_[t * rows_ * tile + i];
    }
  }
  work_ = std::move(work);
  group_ = std::move(group);
  rows_ = wider;
  hits_.resize(std::size_t{tiles_} * rows_ + 1);
  done_.resize(work_.size());
}

// Heights only grow as groups come; here they fall to what the counts say.
void Residents::trim() {
  for (std::uint32_t t = 0; t < tiles_; ++t) {
    height_[t] = 0;
    for (std::uint32_t i = 0; i < tile; ++i) {
      height_[t] = std::max(height_[t], tops_[t * tile + i].count);
    }
  }
}

// The loops below keep members in locals: after a store through a pointer the compiler would read
// them again for every block. Kept out of line, they keep them in registers.
[[gnu::noinline]] std::uint64_t Residents::add(std::span<const SmIndex> sms, KernelIndex kernel,
                                               TbTicks tick, float work) {
  // The same kernel may be added twice in a tick, the second time on SMs of the first.
  if (batch_kernel_ != kernel || batch_tick_ != tick) {
    ++batch_;
    batch_kernel_ = kernel;
    batch_tick_ = tick;
  }
  const std::uint64_t batch = batch_;
  Top* const tops = tops_.data();
  std::uint32_t* const height = height_.data();
  float* works = work_.data();
  Group* groups = group_.data();
  std::size_t rows = rows_;
  std::uint64_t joined = 0;
  std::uint64_t together = 0;
  const SmIndex* const first = sms.data();
  const SmIndex* const last = first + sms.size();
  for (const SmIndex* place = first; place != last; ++place) {
    const std::uint32_t sm = place->raw();
    Top& top = tops[sm];
    const std::uint32_t row = top.count;
    const std::uint32_t lane = sm % tile;
    std::size_t i = (sm - lane) * rows + std::size_t{row} * tile + lane;
    if (top.batch == batch) {
      ++groups[i - tile].blocks;
      ++joined;
      together += place != first && place[-1] == *place ? 1U : 0U;
      continue;
    }
    if (row == rows) {
      widen();
      works = work_.data();
      groups = group_.data();
      rows = rows_;
      i = at(sm, row);
    }
    top = {batch, row + 1};
    works[i] = work;
    groups[i] = {kernel, 1, tick, *place};
    if (row >= height[sm / tile]) height[sm / tile] = row + 1;
  }
  groups_ += sms.size() - joined;
  return together;
}

// Takes out the groups of the hits into done_. The last group of an SM moves into the place of the
// one taken, which is why the hits are gone through backwards: rows fall.
[[gnu::noinline]] std::size_t Residents::remove(std::size_t hits) {
  Top* const tops = tops_.data();
  float* const works = work_.data();
  Group* const groups = group_.data();
  Group* done = done_.data();
  const std::size_t rows = rows_;
  for (const Hit* hit = hits_.data() + hits; hit-- != hits_.data();) {
    float* const tile_works = works + hit->first_sm * rows;
    Group* const tile_groups = groups + hit->first_sm * rows;
    Top* const tile_tops = tops + hit->first_sm;
    const std::uint32_t row = hit->row * tile;
    for (std::uint32_t mask = hit->mask; mask != 0; mask &= mask - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
      const std::uint32_t i = row + lane;
      const std::uint32_t last = --tile_tops[lane].count * tile + lane;
      *done++ = tile_groups[i];
      tile_works[i] = tile_works[last];
      tile_groups[i] = tile_groups[last];
      tile_works[last] = nothing;
    }
  }
  return static_cast<std::size_t>(done - done_.data());
}

void Residents::advance(const Steps& steps) {
  constexpr std::uint32_t trim_every = 16;
  if (++calls_ % trim_every == 0) trim();
  const Advance args{work_.data(), steps, height_.data(), tiles_, rows_, hits_.data()};
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  const std::size_t levels = steps.level_cost.size();
  const auto subtract = has_avx512 ? (levels == 0    ? &subtract_avx512<0>
                                      : levels == 16 ? &subtract_avx512<1>
                                                     : &subtract_avx512<4>)
                        : has_avx2 ? (levels == 0 ? &subtract_avx2<false> : &subtract_avx2<true>)
                                   : &subtract_plain;
#else
  const auto subtract = &subtract_plain;
#endif
  const std::size_t hits = subtract(args);
  done_count_ = hits == 0 ? 0 : remove(hits);
  groups_ -= done_count_;
}

KernelIndex Residents::some_kernel() const {
  std::uint32_t sm = 0;
  while (tops_[sm].count == 0) ++sm;
  return group_[at(sm, 0)].kernel;
}

}  // namespace demarc::sim
