// Products without tensor cores, in the arithmetic of the numbers themselves: a block of 256
// threads makes a tile of 64 x 64 of D, each thread 4 x 4 of it.
#pragma once

#include "epilogue.cuh"

namespace demarc::blas {

template <class Number>
static __device__ __forceinline__ Number load_plain(u64 at);
template <>
__device__ __forceinline__ float load_plain<float>(u64 at) {
  return bits_to_float(load4(at));
}
template <>
__device__ __forceinline__ double load_plain<double>(u64 at) {
  return __builtin_bit_cast(double, load8(at));
}

template <class Number>
static __device__ __forceinline__ Number scale_at(u64 at, double otherwise) {
  return at == 0 ? static_cast<Number>(otherwise) : load_plain<Number>(at);
}

constexpr u32 plain_tile = 64;
constexpr u32 plain_depth = 16;
constexpr u32 plain_threads = 256;

// One side of a step: `plain_depth` steps of the depth, each with 64 rows or columns.
template <class Number>
static __device__ __forceinline__ void load_side(Number (&side)[plain_depth][plain_tile + 4],
                                                 u64 at, u64 pitch, bool along_depth, u32 begin,
                                                 u32 count, u32 from, u32 depth) {
#pragma unroll
  for (u32 i = 0; i < plain_tile * plain_depth / plain_threads; ++i) {
    const u32 number = threadIdx.x + i * plain_threads;
    const u32 step = along_depth ? number % plain_depth : number / plain_tile;
    const u32 line = along_depth ? number / plain_depth : number % plain_tile;
    const u32 row = begin + line;
    const u32 k = from + step;
    Number v = 0;
    if (row < count && k < depth) {
      v = load_plain<Number>(at +
                             (along_depth ? row * pitch + k : k * pitch + row) * sizeof(Number));
    }
    side[step][line] = v;
  }
}

template <class Number>
static __device__ __forceinline__ void plain_product(const ProductArguments& p) {
  __shared__ Number of_x[plain_depth][plain_tile + 4];
  __shared__ Number of_w[plain_depth][plain_tile + 4];
  const u32 tiles = (p.rows + plain_tile - 1) / plain_tile;
  const u32 first_row = blockIdx.x % tiles * plain_tile;
  const u32 first_column = blockIdx.x / tiles * plain_tile;
  const Number alpha = scale_at<Number>(p.alpha_at, p.alpha);
  const Number beta = scale_at<Number>(p.beta_at, p.beta);
  const u64 x = place_of(p.x, p.pointers, blockIdx.z);
  const u64 w = place_of(p.w, p.pointers, blockIdx.z);
  const u32 row = threadIdx.x / 16;
  const u32 column = threadIdx.x % 16;
  Number sums[4][4] = {};
  const u32 depth = alpha == Number{0} ? 0 : p.depth;
#pragma unroll 1
  for (u32 k = 0; k < depth; k += plain_depth) {
    __syncthreads();
    load_side(of_x, x, p.x.pitch, p.x_along_depth != 0, first_row, p.rows, k, depth);
    load_side(of_w, w, p.w.pitch, p.w_along_depth != 0, first_column, p.columns, k, depth);
    __syncthreads();
#pragma unroll
    for (u32 step = 0; step < plain_depth; ++step) {
      Number a[4];
      Number b[4];
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        a[i] = of_x[step][row * 4 + i];
        b[i] = of_w[step][column + 16 * i];
      }
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
#pragma unroll
        for (u32 j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
      }
    }
  }
  const u64 c = place_of(p.c, p.pointers, blockIdx.z);
  const u64 d = place_of(p.d, p.pointers, blockIdx.z);
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      const u32 r = first_row + row * 4 + i;
      const u32 s = first_column + column + 16 * j;
      if (r >= p.rows || s >= p.columns) continue;
      if (sizeof(Number) == 4) {
        finish(p, {static_cast<float>(alpha), static_cast<float>(beta)}, c, d, r, s,
               static_cast<float>(sums[i][j]));
        continue;
      }
      double v = alpha * sums[i][j];
      if (beta != 0) v += beta * load_plain<double>(c + (u64{r} * p.c.pitch + s) * 8);
      store8(d + (u64{r} * p.d.pitch + s) * 8, __builtin_bit_cast(u64, v));
    }
  }
}

}  // namespace demarc::blas
