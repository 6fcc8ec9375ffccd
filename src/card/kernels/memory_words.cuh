// What the kernels have in common that time memory: where and when they run, and loads past the L1.
#pragma once

#include "demarc_kernel.cuh"

namespace {

using u32 = unsigned;
using u64 = unsigned long long;

__device__ __forceinline__ u32 own_sm() {
  u32 sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

__device__ __forceinline__ u64 nanoseconds() {
  u64 time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
  return time;
}

// Past the L1: the answer comes from the L2 or beyond.
__device__ __forceinline__ u32 load_word(u64 address) {
  u32 value;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

__device__ __forceinline__ uint4 load_vector(u64 address) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address)
               : "memory");
  return v;
}

}  // namespace
