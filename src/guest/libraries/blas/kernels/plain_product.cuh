// Products without tensor cores, in the arithmetic of the numbers themselves: a block of 256
// threads makes a square tile of D, each thread Own x Own numbers of it. The next step's numbers
// are loaded into registers while a step is computed.
#pragma once

#include "epilogue.cuh"
#include "plain_numbers.cuh"

namespace demarc::blas {

constexpr u32 plain_depth = 16;
constexpr u32 plain_threads = 256;

// One side of a step, as one thread loads it: pieces along the depth or across it.
template <class Number, u32 Tile>
struct PlainSide {
  static constexpr u32 of_piece = Piece<Number>::count;
  static constexpr u32 pieces = Tile * plain_depth / of_piece / plain_threads;
  using Shared = Number[plain_depth][Tile + 4];

  u64 at;
  u64 pitch;
  u32 begin;
  u32 count;
  bool along_depth;
  bool aligned;
  Piece<Number> loaded[pieces];

  __device__ __forceinline__ PlainSide(u64 address, u64 of_pitch, int along, u32 first, u32 all)
      : at(address),
        pitch(of_pitch),
        begin(first),
        count(all),
        along_depth(along != 0),
        aligned(((address | of_pitch * sizeof(Number)) & 15U) == 0) {}
  __device__ __forceinline__ u32 step_of(u32 number) const {
    return along_depth ? number % (plain_depth / of_piece) * of_piece : number / (Tile / of_piece);
  }
  __device__ __forceinline__ u32 line_of(u32 number) const {
    return along_depth ? number / (plain_depth / of_piece) : number % (Tile / of_piece) * of_piece;
  }
  __device__ __forceinline__ void load(u32 from, u32 depth) {
#pragma unroll
    for (u32 i = 0; i < pieces; ++i) {
      const u32 number = threadIdx.x + i * plain_threads;
      const u32 row = begin + line_of(number);
      const u32 k = from + step_of(number);
      const u32 left = row < count && k < depth ? (along_depth ? depth - k : count - row) : 0;
      loaded[i] = load_numbers<Number>(
          at + (along_depth ? row * pitch + k : k * pitch + row) * sizeof(Number), left, aligned);
    }
  }
  __device__ __forceinline__ void keep(Shared& side) const {
#pragma unroll
    for (u32 i = 0; i < pieces; ++i) {
      const u32 number = threadIdx.x + i * plain_threads;
      const u32 step = step_of(number);
      const u32 line = line_of(number);
#pragma unroll
      for (u32 j = 0; j < of_piece; ++j) {
        side[along_depth ? step + j : step][along_depth ? line : line + j] = loaded[i].v[j];
      }
    }
  }
};

template <class Number>
static __device__ __forceinline__ void finish_plain(const ProductArguments& p, Number alpha,
                                                    Number beta, u64 c, u64 d, u32 row, u32 column,
                                                    Number sum) {
  Number v = alpha * sum;
  if (beta != Number{0}) {
    v += beta * load_plain<Number>(c + (u64{row} * p.c.pitch + column) * sizeof(Number));
  }
  if constexpr (sizeof(Number) == 4) {
    if (p.bias_at != 0) v += load_plain<Number>(p.bias_at + u64{column} * sizeof(Number));
    v = activated(v, p.activation);
  }
  store_plain(d + (u64{row} * p.d.pitch + column) * sizeof(Number), v);
}

template <class Number, u32 Own>
static __device__ __forceinline__ void plain_product(const ProductArguments& p) {
  constexpr u32 plain_tile = 16 * Own;
  constexpr u32 of_piece = Piece<Number>::count;
  using Side = PlainSide<Number, plain_tile>;
  __shared__ typename Side::Shared of_x;
  __shared__ typename Side::Shared of_w;
  const u32 tiles = (p.rows + plain_tile - 1) / plain_tile;
  const u32 first_row = blockIdx.x % tiles * plain_tile;
  const u32 first_column = blockIdx.x / tiles * plain_tile;
  const Number alpha = scale_at<Number>(p.alpha_at, p.alpha);
  const Number beta = scale_at<Number>(p.beta_at, p.beta);
  Side x(place_of(p.x, p.pointers, blockIdx.z), p.x.pitch, p.x_along_depth, first_row, p.rows);
  Side w(place_of(p.w, p.pointers, blockIdx.z), p.w.pitch, p.w_along_depth, first_column,
         p.columns);
  const u32 row = threadIdx.x / 16 * Own;
  const u32 column = threadIdx.x % 16 * of_piece;
  Number sums[Own][Own] = {};
  const u32 depth = alpha == Number{0} ? 0 : p.depth;
  x.load(0, depth);
  w.load(0, depth);
#pragma unroll 1
  for (u32 k = 0; k < depth; k += plain_depth) {
    __syncthreads();
    x.keep(of_x);
    w.keep(of_w);
    __syncthreads();
    x.load(k + plain_depth, depth);
    w.load(k + plain_depth, depth);
#pragma unroll
    for (u32 step = 0; step < plain_depth; ++step) {
      Number a[Own];
      Number b[Own];
#pragma unroll
      for (u32 i = 0; i < Own; ++i) {
        a[i] = of_x[step][row + i];
        b[i] = of_w[step][i / of_piece * 16 * of_piece + column + i % of_piece];
      }
#pragma unroll
      for (u32 i = 0; i < Own; ++i) {
#pragma unroll
        for (u32 j = 0; j < Own; ++j) sums[i][j] += a[i] * b[j];
      }
    }
  }
  const u64 c = place_of(p.c, p.pointers, blockIdx.z);
  const u64 d = place_of(p.d, p.pointers, blockIdx.z);
#pragma unroll
  for (u32 i = 0; i < Own; ++i) {
#pragma unroll
    for (u32 j = 0; j < Own; ++j) {
      const u32 r = first_row + row + i;
      const u32 s = first_column + j / of_piece * 16 * of_piece + column + j % of_piece;
      if (r >= p.rows || s >= p.columns) continue;
      finish_plain(p, alpha, beta, c, d, r, s, sums[i][j]);
    }
  }
}

}  // namespace demarc::blas
