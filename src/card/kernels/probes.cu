// Probe kernels of room `card`: where blocks run and how far the L2 is. Compiled to PTX at build
// time; see probe_kernels.hpp for the contract of each.
#include "demarc_kernel.cuh"

namespace {

__device__ unsigned smid() {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

__device__ unsigned long long clock_now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}

__device__ void spin(unsigned long long cycles) {
  const unsigned long long begin = clock_now();
  while (clock_now() - begin < cycles) {
  }
}

}  // namespace

extern "C" __global__ void demarc_idle() {}

// counts[%smid] += 1 for each block; sm_of_block[block] = %smid when given. Holds the SM for
// `cycles`, so that later blocks have to look for another one.
extern "C" __global__ void demarc_where(unsigned* counts, unsigned* sm_of_block,
                                        unsigned long long cycles) {
  if (threadIdx.x == 0) {
    const unsigned sm = smid();
    atomicAdd(&counts[sm], 1U);
    if (sm_of_block != nullptr) sm_of_block[blockIdx.x] = sm;
  }
  spin(cycles);
}

// Latency of an L2 hit from SM `target` to each of `lines` lines, `stride` bytes apart: the least
// of `repeats` walks of 8 dependent loads, in cycles for all 8. The first 8 bytes of each line hold
// the line's own address. Blocks elsewhere leave; the first block on the target takes the work.
// `zero` is 0, which the compiler does not know: the first address depends on the first reading of
// the clock through it, and the second reading waits for a branch on the last value loaded.
extern "C" __global__ void demarc_latency(unsigned long long base, unsigned long long stride,
                                          unsigned lines, unsigned repeats, unsigned target,
                                          unsigned zero, unsigned* taken, unsigned* cycles) {
  if (threadIdx.x != 0 || smid() != target || atomicAdd(taken, 1U) != 0) return;
  for (unsigned line = 0; line < lines; ++line) {
    const unsigned long long start = base + line * stride;
    unsigned least = 0xffffffffU;
    for (unsigned repeat = 0; repeat < repeats; ++repeat) {
      unsigned begin;
      unsigned end;
      asm volatile("mov.u32 %0, %%clock;" : "=r"(begin)::"memory");
      unsigned long long at = start + static_cast<unsigned long long>(begin) * zero;
#pragma unroll
      for (int hop = 0; hop < 8; ++hop) {
        asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(at) : "l"(at) : "memory");
      }
      if (at != start) return;
      asm volatile("mov.u32 %0, %%clock;" : "=r"(end)::"memory");
      const unsigned took = end - begin;
      least = took < least ? took : least;
    }
    cycles[line] = least;
  }
}

// The first 8 bytes of each line become the line's own address.
extern "C" __global__ void demarc_self_lines(unsigned long long base, unsigned long long stride,
                                             unsigned lines) {
  const unsigned line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line < lines)
    *reinterpret_cast<unsigned long long*>(base + line * stride) = base + line * stride;
}

// A persistent, SM-affine kernel: blocks whose SM is not in `allowed` (bit %smid % 64 of word
// %smid / 64) leave; the others take block numbers below `blocks` from `next` and record their SM
// in `sm_of_block`.
extern "C" __global__ void demarc_affine(const unsigned long long* allowed, unsigned* next,
                                         unsigned blocks, unsigned* sm_of_block,
                                         unsigned long long cycles) {
  __shared__ unsigned block;
  const unsigned sm = smid();
  if (((allowed[sm / 64] >> (sm % 64)) & 1U) == 0) return;
  while (true) {
    if (threadIdx.x == 0) block = atomicAdd(next, 1U);
    __syncthreads();
    const unsigned mine = block;
    __syncthreads();
    if (mine >= blocks) return;
    if (threadIdx.x == 0) sm_of_block[mine] = sm;
    spin(cycles);
  }
}
