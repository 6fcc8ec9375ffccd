// c = a + b, one element a thread.
#include "demarc_kernel.cuh"

DEMARC_KERNEL vecadd(const float* __restrict__ a, const float* __restrict__ b,
                     float* __restrict__ c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
