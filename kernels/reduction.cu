// Sum of an array: every block adds its stretch (a grid-stride loop, shuffles, one word of shared
// memory a warp) and writes one partial sum. A second launch with one block adds the partial sums.
#include "demarc_kernel.cuh"

static __device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_down_sync(0xffffffffu, value, distance);
  return value;
}

DEMARC_KERNEL reduce_sum(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float warp_sums[32];
  const int thread = threadIdx.x;
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + thread; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  sum = warp_sum(sum);
  if (thread % 32 == 0) warp_sums[thread / 32] = sum;
  __syncthreads();
  if (thread < 32) {
    sum = thread < static_cast<int>(blockDim.x / 32) ? warp_sums[thread] : 0.0f;
    sum = warp_sum(sum);
    if (thread == 0) out[blockIdx.x] = sum;
  }
}
