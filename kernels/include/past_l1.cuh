// Accesses that pass the L1 by, so that a buffer of the right size is served by the L2 or by DRAM.
#pragma once

#include "demarc_kernel.cuh"

static __device__ __forceinline__ uint4 load_past_l1(const uint4* address) {
  uint4 value;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

static __device__ __forceinline__ void store_past_l1(uint4* address, unsigned value) {
  asm volatile("st.global.cg.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(address), "r"(value) : "memory");
}
