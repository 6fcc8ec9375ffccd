// f32 and f64 in memory, and what the kernels without tensor cores do with them.
#pragma once

#include "access.cuh"

namespace demarc::blas {

template <class Number>
static __device__ __forceinline__ Number load_plain(u64 at) {
  if constexpr (sizeof(Number) == 4) {
    return bits_to_float(load4(at));
  } else {
    return __builtin_bit_cast(double, load8(at));
  }
}
static __device__ __forceinline__ void store_plain(u64 at, float v) {
  store4(at, float_to_bits(v));
}
static __device__ __forceinline__ void store_plain(u64 at, double v) {
  store8(at, __builtin_bit_cast(u64, v));
}

template <class Number>
static __device__ __forceinline__ Number scale_at(u64 at, double otherwise) {
  return at == 0 ? static_cast<Number>(otherwise) : load_plain<Number>(at);
}

template <class Number>
struct Piece {
  static constexpr u32 count = 16 / sizeof(Number);
  Number v[count];
};

// The first `valid` numbers of a piece; the others are 0.
template <class Number>
static __device__ __forceinline__ Piece<Number> load_numbers(u64 at, u64 valid, bool aligned) {
  Piece<Number> piece = {};
  if (aligned && valid >= Piece<Number>::count) {
    const uint4 words = load16(at);
    if constexpr (sizeof(Number) == 4) {
      piece.v[0] = bits_to_float(words.x);
      piece.v[1] = bits_to_float(words.y);
      piece.v[2] = bits_to_float(words.z);
      piece.v[3] = bits_to_float(words.w);
    } else {
      piece.v[0] = __builtin_bit_cast(double, static_cast<u64>(words.y) << 32U | words.x);
      piece.v[1] = __builtin_bit_cast(double, static_cast<u64>(words.w) << 32U | words.z);
    }
    return piece;
  }
#pragma unroll
  for (u32 i = 0; i < Piece<Number>::count; ++i) {
    if (i < valid) piece.v[i] = load_plain<Number>(at + i * sizeof(Number));
  }
  return piece;
}

// What the lane has whose number differs by the bit `distance`.
static __device__ __forceinline__ u32 other_lane(u32 word, u32 distance) {
  u32 v;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
               : "=r"(v)
               : "r"(word), "r"(distance));
  return v;
}
static __device__ __forceinline__ float other_lane(float v, u32 distance) {
  return bits_to_float(other_lane(float_to_bits(v), distance));
}
static __device__ __forceinline__ double other_lane(double v, u32 distance) {
  const u64 bits = __builtin_bit_cast(u64, v);
  const u64 low = other_lane(static_cast<u32>(bits), distance);
  const u64 high = other_lane(static_cast<u32>(bits >> 32U), distance);
  return __builtin_bit_cast(double, high << 32U | low);
}

template <class Number>
static __device__ __forceinline__ Number sum_of_warp(Number v) {
#pragma unroll
  for (u32 distance = 16; distance > 0; distance /= 2) v += other_lane(v, distance);
  return v;
}

static __device__ __forceinline__ double root_of(double v) {
  double root;
  asm("sqrt.rn.f64 %0, %1;" : "=d"(root) : "d"(v));
  return root;
}

}  // namespace demarc::blas
