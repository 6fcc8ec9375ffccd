// Histogram of bytes, 256 bins: every block counts in shared memory, then adds to the result.
#include "demarc_kernel.cuh"

constexpr int bins = 256;

DEMARC_KERNEL histogram256(const unsigned* __restrict__ words, unsigned* counts, int word_count) {
  __shared__ unsigned local[bins];
  for (int i = threadIdx.x; i < bins; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < word_count; i += gridDim.x * blockDim.x) {
    const unsigned word = words[i];
    atomicAdd(local + (word & 255u), 1u);
    atomicAdd(local + ((word >> 8) & 255u), 1u);
    atomicAdd(local + ((word >> 16) & 255u), 1u);
    atomicAdd(local + (word >> 24), 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < bins; i += blockDim.x) atomicAdd(counts + i, local[i]);
}
