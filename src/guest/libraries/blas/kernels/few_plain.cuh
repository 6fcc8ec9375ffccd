// Products of f32 of few rows, where both matrices lie along the depth: W is read once. A block of
// eight warps makes 32 columns of D. It keeps 512 steps of X in shared memory, and the lanes of a
// warp have four steps of the depth each.
#pragma once

#include "epilogue.cuh"
#include "plain_numbers.cuh"

namespace demarc::blas {

constexpr u32 few_plain_threads = 256;
constexpr u32 few_plain_depth = 512;
constexpr u32 few_plain_columns = 4;  // per warp

template <u32 Rows>
static __device__ __forceinline__ void few_plain(const ProductArguments& p) {
  constexpr u32 own = few_plain_columns;
  __shared__ __align__(16) float of_x[Rows][few_plain_depth];
  const u32 lane = threadIdx.x % 32;
  const u32 first_column = (blockIdx.x * (few_plain_threads / 32) + threadIdx.x / 32) * own;
  const u64 x = place_of(p.x, p.pointers, blockIdx.z);
  const u64 w = place_of(p.w, p.pointers, blockIdx.z);
  const Scales scales = scales_of(p);
  const u32 depth = scales.alpha == 0.0f ? 0 : p.depth;
  float sums[own][Rows] = {};
#pragma unroll 1
  for (u32 from = 0; from < depth; from += few_plain_depth) {
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < Rows * few_plain_depth / 4 / few_plain_threads; ++i) {
      const u32 number = threadIdx.x + i * few_plain_threads;
      const u32 row = number / (few_plain_depth / 4);
      const u32 step = number % (few_plain_depth / 4) * 4;
      const u32 k = from + step;
      const u32 left = row < p.rows && k < depth ? depth - k : 0;
      const Piece<float> piece =
          load_numbers<float>(x + (row * p.x.pitch + k) * sizeof(float), left, true);
#pragma unroll
      for (u32 j = 0; j < 4; ++j) of_x[row][step + j] = piece.v[j];
    }
    __syncthreads();
#pragma unroll 1
    for (u32 part = 0; part < few_plain_depth; part += 128) {
      const u32 k = from + part + lane * 4;
      Piece<float> of_w[own];
#pragma unroll
      for (u32 j = 0; j < own; ++j) {
        const u32 column = first_column + j;
        const u32 left = column < p.columns && k < depth ? depth - k : 0;
        of_w[j] = load_numbers<float>(w + (column * p.w.pitch + k) * sizeof(float), left, true);
      }
#pragma unroll
      for (u32 row = 0; row < Rows; ++row) {
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
          const float v = of_x[row][part + lane * 4 + i];
#pragma unroll
          for (u32 j = 0; j < own; ++j) sums[j][row] += of_w[j].v[i] * v;
        }
      }
    }
  }
  // Each lane ends some of the warp's sums.
  float kept[(own * Rows + 31) / 32] = {};
#pragma unroll
  for (u32 i = 0; i < own * Rows; ++i) {
    const float sum = sum_of_warp(sums[i / Rows][i % Rows]);
    if (lane == i % 32) kept[i / 32] = sum;
  }
  const u64 c = place_of(p.c, p.pointers, blockIdx.z);
  const u64 d = place_of(p.d, p.pointers, blockIdx.z);
#pragma unroll
  for (u32 i = 0; i < (own * Rows + 31) / 32; ++i) {
    const u32 number = i * 32 + lane;
    const u32 column = first_column + number / Rows;
    const u32 row = number % Rows;
    if (number < own * Rows && row < p.rows && column < p.columns) {
      finish(p, scales, c, d, row, column, kept[i]);
    }
  }
}

}  // namespace demarc::blas
