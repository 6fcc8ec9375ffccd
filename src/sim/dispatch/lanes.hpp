// The same small work on 16 numbers beside each other, without branches: which of them a mask picks
// is anybody's guess, and a mispredicted branch costs more than all 16. Bit i of a mask is lane i.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace demarc::sim {

inline constexpr std::uint32_t lanes_at_once = 16;

#if defined(__x86_64__)
namespace lanes_detail {

// All bits of lane i of the `quarter` (0 to 3) where bit i of `mask` is set.
inline __m128i picked(std::uint32_t mask, int quarter) {
  const __m128i bits = _mm_slli_epi32(_mm_set_epi32(8, 4, 2, 1), 4 * quarter);
  return _mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32(static_cast<int>(mask)), bits), bits);
}
inline __m128i load(const std::uint32_t* lanes, int quarter) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes) + quarter);
}
inline std::uint32_t mask_of(const __m128i (&quarters)[4]) {
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(
      _mm_packs_epi32(quarters[0], quarters[1]), _mm_packs_epi32(quarters[2], quarters[3]))));
}

}  // namespace lanes_detail
#endif

// lanes[i] -= amount where `mask` says so.
inline void subtract_in(std::uint32_t* lanes, std::uint32_t mask, std::uint32_t amount) {
#if defined(__x86_64__)
  const __m128i amounts = _mm_set1_epi32(static_cast<int>(amount));
  for (int q = 0; q < 4; ++q) {
    const __m128i less = _mm_and_si128(lanes_detail::picked(mask, q), amounts);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes) + q,
                     _mm_sub_epi32(lanes_detail::load(lanes, q), less));
  }
#else
  for (std::uint32_t i = 0; i < lanes_at_once; ++i) lanes[i] -= amount & (0U - (mask >> i & 1U));
#endif
}

// lanes[i] = value where `mask` says so.
inline void set_in(float* lanes, std::uint32_t mask, float value) {
#if defined(__x86_64__)
  const __m128 values = _mm_set1_ps(value);
  for (int q = 0; q < 4; ++q) {
    const __m128 pick = _mm_castsi128_ps(lanes_detail::picked(mask, q));
    const __m128 kept = _mm_andnot_ps(pick, _mm_loadu_ps(lanes + 4 * q));
    _mm_storeu_ps(lanes + 4 * q, _mm_or_ps(kept, _mm_and_ps(pick, values)));
  }
#else
  for (std::uint32_t i = 0; i < lanes_at_once; ++i) {
    if ((mask >> i & 1U) != 0) lanes[i] = value;
  }
#endif
}

// Where lanes[i] + amount, wrapping around, is at most `most`.
inline std::uint32_t sums_up_to(const std::uint32_t* lanes, std::uint32_t amount,
                                std::uint32_t most) {
#if defined(__x86_64__)
  // There is only a signed comparison: both sides have their top bit flipped.
  const __m128i flip = _mm_set1_epi32(static_cast<int>(0x80000000U));
  const __m128i amounts = _mm_set1_epi32(static_cast<int>(amount));
  const __m128i limit = _mm_xor_si128(_mm_set1_epi32(static_cast<int>(most)), flip);
  __m128i above[4];
  for (int q = 0; q < 4; ++q) {
    const __m128i sum = _mm_add_epi32(lanes_detail::load(lanes, q), amounts);
    above[q] = _mm_cmpgt_epi32(_mm_xor_si128(sum, flip), limit);
  }
  return ~lanes_detail::mask_of(above) & 0xFFFFU;
#else
  std::uint32_t mask = 0;
  for (std::uint32_t i = 0; i < lanes_at_once; ++i) {
    mask |= static_cast<std::uint32_t>(lanes[i] + amount <= most) << i;
  }
  return mask;
#endif
}

// Where lanes[i] equals `value`.
inline std::uint32_t equal_to(const std::uint32_t* lanes, std::uint32_t value) {
#if defined(__x86_64__)
  const __m128i values = _mm_set1_epi32(static_cast<int>(value));
  __m128i equal[4];
  for (int q = 0; q < 4; ++q) equal[q] = _mm_cmpeq_epi32(lanes_detail::load(lanes, q), values);
  return lanes_detail::mask_of(equal);
#else
  std::uint32_t mask = 0;
  for (std::uint32_t i = 0; i < lanes_at_once; ++i) {
    mask |= static_cast<std::uint32_t>(lanes[i] == value) << i;
  }
  return mask;
#endif
}

}  // namespace demarc::sim
