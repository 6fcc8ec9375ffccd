// Scalar products of many pairs of vectors, one pair a block.
#include "demarc_kernel.cuh"

constexpr int block_threads = 256;

DEMARC_KERNEL scalar_product(const float* __restrict__ a, const float* __restrict__ b,
                             float* __restrict__ products, int elements) {
  __shared__ float sums[block_threads];
  const int thread = threadIdx.x;
  const float* x = a + static_cast<long long>(blockIdx.x) * elements;
  const float* y = b + static_cast<long long>(blockIdx.x) * elements;
  float sum = 0.0f;
  for (int i = thread; i < elements; i += block_threads) sum += x[i] * y[i];
  sums[thread] = sum;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] += sums[thread + half];
  }
  if (thread == 0) products[blockIdx.x] = sums[0];
}
