#include "dispatch/residents.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace demarc::sim {
namespace {

constexpr std::uint32_t tile = Residents::tile;

struct AdvanceArgs {
  float* work;
  const float* step;
  const std::uint32_t* height;
  std::uint32_t tiles, rows;
  Residents::Hit* hits;
};

std::size_t advance_plain(const AdvanceArgs& a) {
  std::size_t hits = 0;
  for (std::uint32_t t = 0; t < a.tiles; ++t) {
    const float* step = a.step + std::size_t{t} * tile;
    for (std::uint32_t row = 0; row < a.height[t]; ++row) {
      float* work = a.work + (std::size_t{t} * a.rows + row) * tile;
      std::uint32_t mask = 0;
      for (std::uint32_t i = 0; i < tile; ++i) {
        work[i] -= step[i];
        mask |= static_cast<std::uint32_t>(work[i] <= 0.0F) << i;
      }
      a.hits[hits] = {t, row, mask};
      hits += mask != 0 ? 1U : 0U;
    }
  }
  return hits;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) std::size_t advance_avx2(const AdvanceArgs& a) {
  std::size_t hits = 0;
  const __m256 zero = _mm256_setzero_ps();
  for (std::uint32_t t = 0; t < a.tiles; ++t) {
    const __m256 low_step = _mm256_loadu_ps(a.step + std::size_t{t} * tile);
    const __m256 high_step = _mm256_loadu_ps(a.step + std::size_t{t} * tile + 8);
    float* work = a.work + std::size_t{t} * a.rows * tile;
    for (std::uint32_t row = 0; row < a.height[t]; ++row, work += tile) {
      const __m256 low = _mm256_sub_ps(_mm256_loadu_ps(work), low_step);
      const __m256 high = _mm256_sub_ps(_mm256_loadu_ps(work + 8), high_step);
      _mm256_storeu_ps(work, low);
      _mm256_storeu_ps(work + 8, high);
      const int low_mask = _mm256_movemask_ps(_mm256_cmp_ps(low, zero, _CMP_LE_OQ));
      const int high_mask = _mm256_movemask_ps(_mm256_cmp_ps(high, zero, _CMP_LE_OQ));
      const auto mask = static_cast<std::uint32_t>(low_mask | (high_mask << 8));
      a.hits[hits] = {t, row, mask};
      hits += mask != 0 ? 1U : 0U;
    }
  }
  return hits;
}

__attribute__((target("avx2"))) void steps_avx2(const float* sm_cost, float memory_cost,
                                                float* step, std::size_t count) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 memory = _mm256_set1_ps(memory_cost);
  for (std::size_t i = 0; i < count; i += 8) {
    const __m256 cost = _mm256_add_ps(_mm256_loadu_ps(sm_cost + i), memory);
    _mm256_storeu_ps(step + i, _mm256_div_ps(one, _mm256_add_ps(one, cost)));
  }
}

bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

}  // namespace

Residents::Residents(std::uint32_t n_sms)
    : tiles_(static_cast<std::uint32_t>(padded(n_sms) / tile)),
      work_(padded(n_sms) * rows_, nothing),
      group_(work_.size()),
      count_(padded(n_sms)),
      height_(tiles_),
      in_row_(std::size_t{tiles_} * rows_),
      hits_(std::size_t{tiles_} * rows_ + 1) {}

void Residents::widen() {
  const std::uint32_t wider = rows_ * 2;
  std::vector<float> work(std::size_t{tiles_} * wider * tile, nothing);
  std::vector<Group> group(work.size());
  std::vector<std::uint32_t> in_row(std::size_t{tiles_} * wider);
  for (std::size_t t = 0; t < tiles_; ++t) {
    for (std::size_t row = 0; row < rows_; ++row) {
      in_row[t * wider + row] = in_row_[t * rows_ + row];
    }
    for (std::size_t i = 0; i < std::size_t{rows_} * tile; ++i) {
      work[t * wider * tile + i] = work_[t * rows_ * tile + i];
      group[t * wider * tile + i] = group_[t * rows_ * tile + i];
    }
  }
  work_ = std::move(work);
  group_ = std::move(group);
  in_row_ = std::move(in_row);
  rows_ = wider;
  hits_.resize(std::size_t{tiles_} * rows_ + 1);
}

const Residents::Hit* Residents::advance(const float* step, std::size_t& hits) {
  const AdvanceArgs args{work_.data(), step, height_.data(), tiles_, rows_, hits_.data()};
#if defined(__x86_64__)
  hits = has_avx2() ? advance_avx2(args) : advance_plain(args);
#else
  hits = advance_plain(args);
#endif
  return hits_.data();
}

void compute_steps(const float* sm_cost, float memory_cost, float* step, std::size_t count) {
#if defined(__x86_64__)
  if (has_avx2()) {
    steps_avx2(sm_cost, memory_cost, step, count);
    return;
  }
#endif
  for (std::size_t i = 0; i < count; ++i) step[i] = 1.0F / (1.0F + (sm_cost[i] + memory_cost));
}

}  // namespace demarc::sim
