// What our device code needs and nothing more. Under nvcc the CUDA headers are there already; under
// clang this header stands in for them, so that no CUDA toolkit is needed.
#pragma once

#if !defined(__NVCC__)

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
};
#include <__clang_cuda_builtin_vars.h>

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
static __device__ __forceinline__ float2 make_float2(float x, float y) {
  return {x, y};
}
static __device__ __forceinline__ float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
static __device__ __forceinline__ uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}

// Clang 14 holds that its own __syncthreads() changes no shared variable whose address nobody else
// has, and moves loads of it across the barrier.
static __device__ __forceinline__ void demarc_sync_threads() {
  asm volatile("bar.sync 0;" ::: "memory");
}
#define __syncthreads() demarc_sync_threads()

static __device__ __forceinline__ float sqrtf(float x) {
  return __nvvm_sqrt_rn_f(x);
}
static __device__ __forceinline__ float rsqrtf(float x) {
  return __nvvm_rsqrt_approx_f(x);
}
static __device__ __forceinline__ float fabsf(float x) {
  return __builtin_fabsf(x);
}
static __device__ __forceinline__ float fmaxf(float x, float y) {
  return __nvvm_fmax_f(x, y);
}
static __device__ __forceinline__ float fminf(float x, float y) {
  return __nvvm_fmin_f(x, y);
}
static __device__ __forceinline__ float __sinf(float x) {
  return __nvvm_sin_approx_f(x);
}
static __device__ __forceinline__ float __cosf(float x) {
  return __nvvm_cos_approx_f(x);
}
static __device__ __forceinline__ float __expf(float x) {
  return __nvvm_ex2_approx_f(x * 1.4426950408889634f);
}
static __device__ __forceinline__ float __fdividef(float x, float y) {
  return __nvvm_div_approx_f(x, y);
}
static __device__ __forceinline__ int atomicAdd(int* p, int v) {
  return __nvvm_atom_add_gen_i(p, v);
}
static __device__ __forceinline__ unsigned atomicAdd(unsigned* p, unsigned v) {
  return static_cast<unsigned>(
      __nvvm_atom_add_gen_i(reinterpret_cast<int*>(p), static_cast<int>(v)));
}
static __device__ __forceinline__ float atomicAdd(float* p, float v) {
  return __nvvm_atom_add_gen_f(p, v);
}
static __device__ __forceinline__ unsigned atomicExch(unsigned* p, unsigned v) {
  return static_cast<unsigned>(
      __nvvm_atom_xchg_gen_i(reinterpret_cast<int*>(p), static_cast<int>(v)));
}
static __device__ __forceinline__ float __shfl_down_sync(unsigned mask, float v, unsigned d) {
  return __nvvm_shfl_sync_down_f32(mask, v, d, 31);
}
static __device__ __forceinline__ unsigned __shfl_down_sync(unsigned mask, unsigned v, unsigned d) {
  return static_cast<unsigned>(__nvvm_shfl_sync_down_i32(mask, static_cast<int>(v), d, 31));
}
static __device__ __forceinline__ int min(int a, int b) {
  return a < b ? a : b;
}
static __device__ __forceinline__ int max(int a, int b) {
  return a > b ? a : b;
}

#endif

// Every kernel of ours: C linkage, so that its name in PTX is its name.
#define DEMARC_KERNEL extern "C" __global__ void
