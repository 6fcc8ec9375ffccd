// Products of few rows, up to 16, where both matrices lie along the depth: W is read once, so the
// memory decides. A block of eight warps makes 16 * Tiles columns of D. Its warps divide the depth,
// and each thread's 16 bytes are fragments as they are: the order of the depth within a fragment
// does not matter as long as X and W have the same.
#pragma once

#include "epilogue.cuh"
#include "fragments.cuh"

namespace demarc::blas {

constexpr u32 few_warps = 8;
constexpr u32 few_threads = 32 * few_warps;

// 16 bytes of a line along the depth from step `k` on, whose steps past the depth are 0.
template <class Type>
static __device__ __forceinline__ uint4 load_piece(u64 line, bool there, u32 k, u32 depth) {
  constexpr u32 elements = 16 / Type::bytes;
  if (!there || k >= depth) return make_uint4(0, 0, 0, 0);
  if (k + elements <= depth) return load16(line + u64{k} * Type::bytes);
  u32 words[4] = {};
#pragma unroll
  for (u32 i = 0; i < elements; ++i) {
    if (k + i >= depth) continue;
    if (Type::bytes == 4) {
      words[i % 4] = load4(line + (u64{k} + i) * 4);
    } else {
      words[i / 2 % 4] |= static_cast<u32>(load2(line + (u64{k} + i) * 2)) << (16U * (i % 2));
    }
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

template <class Type, u32 Tiles, u32 Eights>
static __device__ __forceinline__ void multiply_few(const ProductArguments& p, u64 x, u64 w,
                                                    u32 first_column, u32 depth,
                                                    float (&sums)[Tiles][Eights][4]) {
  constexpr u32 elements = 16 / Type::bytes;
  constexpr u32 step = 8 * elements;  // two pieces for each of four lanes
  const u32 lane = threadIdx.x % 32;
  const u32 line = lane / 4;
#pragma unroll 1
  for (u32 k = threadIdx.x / 32 * step; k < depth; k += few_warps * step) {
    uint4 of_w[Tiles][2][2];
    uint4 of_x[Eights][2];
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
      const u32 at = k + (4 * part + lane % 4) * elements;
#pragma unroll
      for (u32 i = 0; i < Tiles; ++i) {
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
          const u32 column = first_column + 16 * i + 8 * half + line;
          of_w[i][half][part] = load_piece<Type>(w + u64{column} * p.w.pitch * Type::bytes,
                                                 column < p.columns, at, depth);
        }
      }
#pragma unroll
      for (u32 j = 0; j < Eights; ++j) {
        const u32 row = 8 * j + line;
        of_x[j][part] =
            load_piece<Type>(x + u64{row} * p.x.pitch * Type::bytes, row < p.rows, at, depth);
      }
    }
#pragma unroll
    for (u32 part = 0; part < 2; ++part) {
#pragma unroll
      for (u32 i = 0; i < Tiles; ++i) {
        const uint4 low = of_w[i][0][part];
        const uint4 high = of_w[i][1][part];
        const u32 first[4] = {Type::made(low.x), Type::made(high.x), Type::made(low.y),
                              Type::made(high.y)};
        const u32 second[4] = {Type::made(low.z), Type::made(high.z), Type::made(low.w),
                               Type::made(high.w)};
#pragma unroll
        for (u32 j = 0; j < Eights; ++j) {
          const uint4 v = of_x[j][part];
          const u32 one[2] = {Type::made(v.x), Type::made(v.y)};
          const u32 other[2] = {Type::made(v.z), Type::made(v.w)};
          Type::multiply(sums[i][j], first, one);
          Type::multiply(sums[i][j], second, other);
        }
      }
    }
  }
}

template <class Type, u32 Tiles, u32 Eights>
static __device__ __forceinline__ void few_product(const ProductArguments& p) {
  constexpr u32 numbers = 4 * Tiles * Eights;  // a thread keeps
  __shared__ float parts[few_warps][numbers][32];
  const u32 lane = threadIdx.x % 32;
  const u32 warp = threadIdx.x / 32;
  const u32 first_column = blockIdx.x * 16 * Tiles;
  const Scales scales = scales_of(p);
  float sums[Tiles][Eights][4] = {};
  multiply_few<Type, Tiles, Eights>(p, place_of(p.x, p.pointers, blockIdx.z),
                                    place_of(p.w, p.pointers, blockIdx.z), first_column,
                                    scales.alpha == 0.0f ? 0 : p.depth, sums);
#pragma unroll
  for (u32 i = 0; i < Tiles; ++i) {
#pragma unroll
    for (u32 j = 0; j < Eights; ++j) {
#pragma unroll
      for (u32 h = 0; h < 4; ++h) parts[warp][(i * Eights + j) * 4 + h][lane] = sums[i][j][h];
    }
  }
  __syncthreads();
  const u64 c = place_of(p.c, p.pointers, blockIdx.z);
  const u64 d = place_of(p.d, p.pointers, blockIdx.z);
#pragma unroll 1
  for (u32 i = threadIdx.x; i < numbers * 32; i += few_threads) {
    // Neighbouring threads have neighbouring columns.
    const u32 place = i % (16 * Tiles);
    const u32 row = i / (16 * Tiles);
    const u32 column = first_column + place;
    if (row >= p.rows || column >= p.columns) continue;
    const u32 number = (place / 16 * Eights + row / 8) * 4 + place % 16 / 8 * 2 + row % 2;
    const u32 of_lane = place % 8 * 4 + row % 8 / 2;
    float sum = 0.0f;
#pragma unroll
    for (u32 j = 0; j < few_warps; ++j) sum += parts[j][number][of_lane];
    finish(p, scales, c, d, row, column, sum);
  }
}

}  // namespace demarc::blas
