// y = A x for a sparse matrix by rows (CSR): one row a thread, and one row a block of 64 threads (a
// PageRank step).
#include "demarc_kernel.cuh"

DEMARC_KERNEL spmv_csr(const unsigned* __restrict__ offsets, const unsigned* __restrict__ columns,
                       const float* __restrict__ values, const float* __restrict__ x,
                       float* __restrict__ y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (unsigned i = offsets[row]; i < offsets[row + 1]; ++i) sum += values[i] * x[columns[i]];
  y[row] = sum;
}

DEMARC_KERNEL pagerank_step(const unsigned* offsets, const unsigned* columns, const float* values,
                            const float* x, float* y) {
  __shared__ float sums[64];
  const int row = blockIdx.x;
  const int thread = threadIdx.x;
  if (thread == 0) y[row] = 0.0f;
  const unsigned end = offsets[row + 1];
  float sum = 0.0f;
  for (unsigned i = offsets[row] + thread; i < end; i += 64) sum += values[i] * x[columns[i]];
  sums[thread] = sum;
  for (int half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) sums[thread] += sums[thread + half];
  }
  if (thread == 0) y[row] = sums[0];
}
