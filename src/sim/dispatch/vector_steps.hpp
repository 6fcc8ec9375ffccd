// The progress of a tick, 1 / (1 + (cost of the SM + cost of the memory)), of 8 or 16 SMs at once;
// in single precision and in this order, as the rules ask.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>

namespace demarc::sim {

__attribute__((target("avx2"))) inline __m256 avx2_step(const float* cost, __m256 memory_cost) {
  const __m256 one = _mm256_set1_ps(1.0F);
  const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(cost), memory_cost);
  return _mm256_div_ps(one, _mm256_add_ps(one, sum));
}

__attribute__((target("avx512f"))) inline __m512 avx512_step(__m512 cost, __m512 memory_cost) {
  const __m512 one = _mm512_set1_ps(1.0F);
  return _mm512_div_ps(one, _mm512_add_ps(one, _mm512_add_ps(cost, memory_cost)));
}

// The steps by level of use, from the cost of each of 16 * `tables` levels (0, 1 or 4).
template <unsigned tables>
class Avx512LevelSteps {
 public:
  __attribute__((target("avx512f"))) Avx512LevelSteps(const float* level_cost, __m512 memory_cost) {
    for (unsigned i = 0; i < tables; ++i) {
      steps_[i] = avx512_step(_mm512_loadu_ps(level_cost + 16 * i), memory_cost);
    }
  }
  // The step of each of 16 SMs; anything where nothing is in use.
  __attribute__((target("avx512f"))) __m512 of(const std::uint32_t* used) const {
    const __m512i level = _mm512_sub_epi32(_mm512_loadu_si512(used), _mm512_set1_epi32(1));
    if constexpr (tables == 1) {
      return _mm512_permutexvar_ps(level, steps_[0]);
    } else {
      const __m512 low = _mm512_permutex2var_ps(steps_[0], level, steps_[1]);
      const __m512 high = _mm512_permutex2var_ps(steps_[2], level, steps_[3]);
      return _mm512_mask_blend_ps(_mm512_test_epi32_mask(level, _mm512_set1_epi32(32)), low, high);
    }
  }

 private:
  static_assert(tables == 0 || tables == 1 || tables == 4);
  __m512 steps_[tables == 0 ? 1 : tables];
};

}  // namespace demarc::sim
#endif
