// Kernels of vectors, and of a matrix and a vector, in the arithmetic of their numbers. The memory
// decides how long they take.
#pragma once

#include "plain_numbers.cuh"
#include "vector_arguments.cuh"

namespace demarc::blas {

constexpr u32 vector_threads = 256;

template <class Number>
static __device__ __forceinline__ u64 element(u64 first, long long step, u64 index) {
  return first + static_cast<u64>(static_cast<long long>(index) * step) * sizeof(Number);
}

// y = alpha sum + beta y, where y is not read without beta.
template <class Number>
static __device__ __forceinline__ void finish_element(const VectorArguments& p, u64 index,
                                                      Number sum) {
  const Number alpha = scale_at<Number>(p.alpha_at, p.alpha);
  const Number beta = scale_at<Number>(p.beta_at, p.beta);
  const u64 at = element<Number>(p.y, p.step_y, index);
  Number v = alpha * sum;
  if (alpha == Number{0}) v = 0;
  if (beta != Number{0}) v += beta * load_plain<Number>(at);
  store_plain(at, v);
}

// One element of y per warp, which is a column of A with x.
template <class Number>
static __device__ __forceinline__ void matrix_columns(const VectorArguments& p) {
  const u32 lane = threadIdx.x % 32;
  const u64 column = (u64{blockIdx.x} * vector_threads + threadIdx.x) / 32;
  if (column >= p.columns) return;
  const u64 line = p.a + column * p.pitch * sizeof(Number);
  const bool aligned = (line & 15U) == 0;
  const bool x_aligned = p.step_x == 1 && (p.x & 15U) == 0;
  const bool idle = scale_at<Number>(p.alpha_at, p.alpha) == Number{0};
  constexpr u32 of_piece = Piece<Number>::count;
  constexpr u32 at_once = 4;
  Number sum = 0;
#pragma unroll 1
  for (u64 row = lane * of_piece; row < p.rows && !idle; row += at_once * 32 * of_piece) {
    Piece<Number> a[at_once];
    Piece<Number> x[at_once];
#pragma unroll
    for (u32 i = 0; i < at_once; ++i) {
      const u64 from = row + i * 32 * of_piece;
      const u64 left = from < p.rows ? p.rows - from : 0;
      a[i] = load_numbers<Number>(line + from * sizeof(Number), left, aligned);
      if (x_aligned) {
        x[i] = load_numbers<Number>(p.x + from * sizeof(Number), left, true);
      } else {
        x[i] = {};
#pragma unroll
        for (u32 j = 0; j < of_piece; ++j) {
          if (j < left) x[i].v[j] = load_plain<Number>(element<Number>(p.x, p.step_x, from + j));
        }
      }
    }
#pragma unroll
    for (u32 i = 0; i < at_once; ++i) {
#pragma unroll
      for (u32 j = 0; j < of_piece; ++j) sum += a[i].v[j] * x[i].v[j];
    }
  }
  sum = sum_of_warp(sum);
  if (lane == 0) finish_element(p, column, sum);
}

// 128 bytes of rows per block. Eight lanes have the pieces of one column, and all others those of
// other columns.
template <class Number>
static __device__ __forceinline__ void matrix_rows(const VectorArguments& p) {
  constexpr u32 of_piece = Piece<Number>::count;
  constexpr u32 rows = 8 * of_piece;
  constexpr u32 groups = vector_threads / 8;
  constexpr u32 at_once = 4;
  __shared__ Number parts[groups][rows + 1];
  const u32 group = threadIdx.x / 8;
  const u32 place = threadIdx.x % 8 * of_piece;
  const u64 row = u64{blockIdx.x} * rows + place;
  const u64 left = row < p.rows ? p.rows - row : 0;
  const u64 first = p.a + row * sizeof(Number);
  const bool aligned = ((p.a | p.pitch * sizeof(Number)) & 15U) == 0;
  const bool idle = scale_at<Number>(p.alpha_at, p.alpha) == Number{0};
  Piece<Number> sums = {};
#pragma unroll 1
  for (u64 column = group; column < p.columns && !idle; column += at_once * groups) {
    Piece<Number> a[at_once];
    Number x[at_once];
#pragma unroll
    for (u32 i = 0; i < at_once; ++i) {
      const u64 at = column + i * groups;
      const bool there = at < p.columns;
      a[i] = load_numbers<Number>(first + at * p.pitch * sizeof(Number), there ? left : 0, aligned);
      x[i] = there ? load_plain<Number>(element<Number>(p.x, p.step_x, at)) : Number{0};
    }
#pragma unroll
    for (u32 i = 0; i < at_once; ++i) {
#pragma unroll
      for (u32 j = 0; j < of_piece; ++j) sums.v[j] += a[i].v[j] * x[i];
    }
  }
#pragma unroll
  for (u32 j = 0; j < of_piece; ++j) parts[group][place + j] = sums.v[j];
  __syncthreads();
  const u64 own = u64{blockIdx.x} * rows + threadIdx.x;
  if (threadIdx.x >= rows || own >= p.rows) return;
  Number sum = 0;
#pragma unroll 4
  for (u32 i = 0; i < groups; ++i) sum += parts[i][threadIdx.x];
  finish_element(p, own, sum);
}

// y = alpha x + y, x = alpha x, and y = x.
enum VectorChange { add_vector, scale_vector, copy_vector };
template <class Number, VectorChange Change>
static __device__ __forceinline__ void change_vector(const VectorArguments& p) {
  const Number alpha = Change == copy_vector ? Number{1} : scale_at<Number>(p.alpha_at, p.alpha);
  if (Change == add_vector && alpha == Number{0}) return;
  const u64 threads = u64{gridDim.x} * vector_threads;
#pragma unroll 1
  for (u64 i = u64{blockIdx.x} * vector_threads + threadIdx.x; i < p.rows; i += threads) {
    const u64 from = element<Number>(p.x, p.step_x, i);
    const u64 to = Change == scale_vector ? from : element<Number>(p.y, p.step_y, i);
    Number v = load_plain<Number>(from);
    if (Change != copy_vector) v *= alpha;
    if (Change == add_vector) v += load_plain<Number>(to);
    store_plain(to, v);
  }
}

// scale * scale * sum is a sum of squares that neither overflows nor becomes 0 on its way.
struct Squares {
  double scale;
  double sum;
};
static __device__ __forceinline__ Squares added(Squares a, Squares b) {
  if (a.scale < b.scale) {
    const Squares other = a;
    a = b;
    b = other;
  }
  // Infinity and NaN: nothing is divided.
  if (b.scale == 0.0 || a.scale == b.scale)
    return {a.scale, a.sum + (b.scale == 0.0 ? 0.0 : b.sum)};
  const double ratio = b.scale / a.scale;
  return {a.scale, a.sum + b.sum * ratio * ratio};
}

template <class Number, bool IsNorm>
static __device__ __forceinline__ void sum_vector(const VectorArguments& p) {
  __shared__ double scales[vector_threads];
  __shared__ double sums[vector_threads];
  Squares own = {IsNorm ? 0.0 : 1.0, 0.0};
  const u64 threads = u64{gridDim.x} * vector_threads;
#pragma unroll 1
  for (u64 i = u64{blockIdx.x} * vector_threads + threadIdx.x; i < p.rows; i += threads) {
    const double x = static_cast<double>(load_plain<Number>(element<Number>(p.x, p.step_x, i)));
    if (!IsNorm) {
      own.sum += x * static_cast<double>(load_plain<Number>(element<Number>(p.y, p.step_y, i)));
    } else if (x != x) {
      own = {1.0, x};
    } else if (x != 0.0) {
      own = added(own, {x < 0.0 ? -x : x, 1.0});
    }
  }
  scales[threadIdx.x] = own.scale;
  sums[threadIdx.x] = own.sum;
#pragma unroll 1
  for (u32 distance = vector_threads / 2; distance > 0; distance /= 2) {
    __syncthreads();
    if (threadIdx.x < distance) {
      const Squares all = added({scales[threadIdx.x], sums[threadIdx.x]},
                                {scales[threadIdx.x + distance], sums[threadIdx.x + distance]});
      scales[threadIdx.x] = all.scale;
      sums[threadIdx.x] = all.sum;
    }
  }
  if (threadIdx.x != 0) return;
  store_plain(p.parts + 16ULL * blockIdx.x, scales[0]);
  store_plain(p.parts + 16ULL * blockIdx.x + 8, sums[0]);
}

// One thread adds what the blocks found.
template <class Number, bool IsNorm>
static __device__ __forceinline__ void sum_parts(const VectorArguments& p) {
  Squares all = {IsNorm ? 0.0 : 1.0, 0.0};
#pragma unroll 1
  for (u32 i = 0; i < p.count; ++i) {
    all = added(all, {load_plain<double>(p.parts + 16ULL * i),
                      load_plain<double>(p.parts + 16ULL * i + 8)});
  }
  const double sum = IsNorm ? all.scale * root_of(all.sum) : all.sum;
  store_plain(p.result, static_cast<Number>(sum));
}

}  // namespace demarc::blas
