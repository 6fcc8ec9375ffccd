// The progress of a tick, 1 / (1 + (cost of the SM + cost of the memory)), of 8 or 16 SMs at once;
// in single precision and in this order, as the rules ask.
#pragma once

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

}  // namespace demarc::sim
#endif
