// What tensor cores multiply: numbers of 16 bits and tf32, and their fragments from shared memory.
// One step takes 32 bytes of the depth: 16 numbers of 16 bits, or 8 floats.
#pragma once

#include "access.cuh"

namespace demarc::blas {

// clang-format off
#define DEMARC_BLAS_MMA(shape_and_types)                                                     \
  asm volatile("mma.sync.aligned." shape_and_types                                           \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"            \
               : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
// clang-format on

struct F16 {
  static constexpr int bytes = 2;
  static __device__ __forceinline__ void multiply(float (&sums)[4], const u32 (&a)[4],
                                                  const u32 (&b)[2]) {
    DEMARC_BLAS_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  }
  static __device__ __forceinline__ u32 made(u32 word) { return word; }
};

struct Bf16 {
  static constexpr int bytes = 2;
  static __device__ __forceinline__ void multiply(float (&sums)[4], const u32 (&a)[4],
                                                  const u32 (&b)[2]) {
    DEMARC_BLAS_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  }
  static __device__ __forceinline__ u32 made(u32 word) { return word; }
};

struct Tf32 {
  static constexpr int bytes = 4;
  static __device__ __forceinline__ void multiply(float (&sums)[4], const u32 (&a)[4],
                                                  const u32 (&b)[2]) {
    DEMARC_BLAS_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  }
  // A float as tensor cores take it.
  static __device__ __forceinline__ u32 made(u32 word) {
    u32 rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(bits_to_float(word)));
    return rounded;
  }
};
#undef DEMARC_BLAS_MMA

template <bool Transposed>
static __device__ __forceinline__ void load_matrices(u32 at, u32 (&v)[4]) {
  if (Transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(at)
                 : "memory");
  }
}

// Where a piece of 16 bytes lies in one side of a stage, which has `Lines` rows or columns. Across
// the depth `line` is a step of the depth, and `piece` one of the pieces of all rows.
template <class Type, bool AlongDepth, u32 Lines>
static __device__ __forceinline__ u32 piece_at(u32 line, u32 piece) {
  if (AlongDepth) return line * 128 + ((piece ^ (line & 7U)) << 4U);
  constexpr u32 pieces = Lines * Type::bytes / 16;
  const u32 moved = Type::bytes == 2 ? line & 7U : (line & 3U) << 1U;
  return (line * pieces + (piece ^ (moved & (pieces - 1)))) << 4U;
}

// A float across the depth.
template <u32 Lines>
static __device__ __forceinline__ u32 load_across(u32 side, u32 row, u32 k) {
  return shared_u32(side + piece_at<Tf32, false, Lines>(k, row / 4) + row % 4 * 4);
}

// 16 rows of X from `row` on, of step `k` of a stage.
template <class Type, bool AlongDepth, u32 Lines>
static __device__ __forceinline__ void load_a(u32 side, u32 row, u32 k, u32 (&a)[4]) {
  const u32 lane = threadIdx.x % 32;
  if (AlongDepth) {
    load_matrices<false>(side + piece_at<Type, true, Lines>(row + lane % 16, 2 * k + lane / 16), a);
  } else if (Type::bytes == 2) {
    load_matrices<true>(side + piece_at<Type, false, Lines>(16 * k + lane % 8 + lane / 16 * 8,
                                                            row / 8 + lane / 8 % 2),
                        a);
  } else {
    const u32 first = row + lane / 4;
    const u32 step = 8 * k + lane % 4;
    a[0] = load_across<Lines>(side, first, step);
    a[1] = load_across<Lines>(side, first + 8, step);
    a[2] = load_across<Lines>(side, first, step + 4);
    a[3] = load_across<Lines>(side, first + 8, step + 4);
  }
#pragma unroll
  for (u32 i = 0; i < 4; ++i) a[i] = Type::made(a[i]);
}

// 16 columns of W from `column` on, as two fragments.
template <class Type, bool AlongDepth, u32 Lines>
static __device__ __forceinline__ void load_b(u32 side, u32 column, u32 k, u32 (&low)[2],
                                              u32 (&high)[2]) {
  const u32 lane = threadIdx.x % 32;
  u32 v[4];
  if (AlongDepth) {
    load_matrices<false>(
        side + piece_at<Type, true, Lines>(column + lane % 8 + lane / 16 * 8, 2 * k + lane / 8 % 2),
        v);
  } else if (Type::bytes == 2) {
    load_matrices<true>(
        side + piece_at<Type, false, Lines>(16 * k + lane % 16, column / 8 + lane / 16), v);
  } else {
    const u32 first = column + lane / 4;
    const u32 step = 8 * k + lane % 4;
    v[0] = load_across<Lines>(side, first, step);
    v[1] = load_across<Lines>(side, first, step + 4);
    v[2] = load_across<Lines>(side, first + 8, step);
    v[3] = load_across<Lines>(side, first + 8, step + 4);
  }
  low[0] = Type::made(v[0]);
  low[1] = Type::made(v[1]);
  high[0] = Type::made(v[2]);
  high[1] = Type::made(v[3]);
}

}  // namespace demarc::blas
