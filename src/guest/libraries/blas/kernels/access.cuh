// Global and shared memory by their own instructions, so that the rewriter need not ask which of
// the two an address means, and numbers of 16 bits.
#pragma once

#include "demarc_kernel.cuh"
#include "product_arguments.cuh"

namespace demarc::blas {

using u64 = unsigned long long;
using u32 = unsigned;
using u16 = unsigned short;

static __device__ __forceinline__ uint4 load16(u64 at) {
  uint4 v;
  asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}
static __device__ __forceinline__ u64 load8(u64 at) {
  u64 v;
  asm volatile("ld.global.b64 %0, [%1];" : "=l"(v) : "l"(at));
  return v;
}
static __device__ __forceinline__ u32 load4(u64 at) {
  u32 v;
  asm volatile("ld.global.b32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}
static __device__ __forceinline__ u16 load2(u64 at) {
  u16 v;
  asm volatile("ld.global.b16 %0, [%1];" : "=h"(v) : "l"(at));
  return v;
}
static __device__ __forceinline__ void store16(u64 at, uint4 v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
static __device__ __forceinline__ void store8(u64 at, u64 v) {
  asm volatile("st.global.b64 [%0], %1;" ::"l"(at), "l"(v) : "memory");
}
static __device__ __forceinline__ void store4(u64 at, u32 v) {
  asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(v) : "memory");
}
static __device__ __forceinline__ void store2(u64 at, u16 v) {
  asm volatile("st.global.b16 [%0], %1;" ::"l"(at), "h"(v) : "memory");
}

// The first `bytes` of 16; the others become 0.
static __device__ __forceinline__ void copy_to_shared(u32 to, u64 from, u32 bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
}
static __device__ __forceinline__ void end_copy_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Left>
static __device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

static __device__ __forceinline__ u32 shared_u32(u32 at) {
  u32 v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}
static __device__ __forceinline__ uint4 shared16(u32 at) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(at)
               : "memory");
  return v;
}
static __device__ __forceinline__ void to_shared16(u32 at, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
static __device__ __forceinline__ void to_shared4(u32 at, u32 v) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
static __device__ __forceinline__ void to_shared2(u32 at, u16 v) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(at), "h"(v) : "memory");
}

static __device__ __forceinline__ float bits_to_float(u32 bits) {
  return __builtin_bit_cast(float, bits);
}
static __device__ __forceinline__ u32 float_to_bits(float number) {
  return __builtin_bit_cast(u32, number);
}
static __device__ __forceinline__ float from_f16(u16 bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}
static __device__ __forceinline__ float from_bf16(u16 bits) {
  return bits_to_float(static_cast<u32>(bits) << 16U);
}
static __device__ __forceinline__ u16 to_f16(float number) {
  u16 v;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(v) : "f"(number));
  return v;
}
static __device__ __forceinline__ u16 to_bf16(float number) {
  u16 v;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(v) : "f"(number));
  return v;
}

// One number of memory.
static __device__ __forceinline__ float load_number(u64 at, int element) {
  if (element == f32) return bits_to_float(load4(at));
  if (element == f16) return from_f16(load2(at));
  return from_bf16(load2(at));
}
static __device__ __forceinline__ void store_number(u64 at, int element, float number) {
  if (element == f32) {
    store4(at, float_to_bits(number));
  } else {
    store2(at, element == f16 ? to_f16(number) : to_bf16(number));
  }
}
static __device__ __forceinline__ u32 bytes_of(int element) {
  return element == f32 ? 4 : element == f64 ? 8 : 2;
}

// The address of a matrix of one batch.
static __device__ __forceinline__ u64 place_of(const Matrix& matrix, int pointers, u32 batch) {
  if (pointers != 0) return load8(matrix.at + 8ULL * batch);
  return matrix.at + matrix.stride * batch;
}

}  // namespace demarc::blas
