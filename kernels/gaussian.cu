// Gaussian elimination without pivoting, column t: the multipliers of the rows below, then their
// update.
#include "demarc_kernel.cuh"

DEMARC_KERNEL gaussian_multipliers(float* multipliers, const float* a, int n, int t) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n - 1 - t) return;
  const int row = t + 1 + i;
  multipliers[n * row + t] = a[n * row + t] / a[n * t + t];
}

DEMARC_KERNEL gaussian_update(const float* multipliers, float* a, float* b, int n, int t) {
  const int y = blockIdx.x * blockDim.x + threadIdx.x;
  const int x = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n - 1 - t || y >= n - t) return;
  const int row = t + 1 + x;
  const float multiplier = multipliers[n * row + t];
  a[n * row + y + t] -= multiplier * a[n * t + y + t];
  if (y == 0) b[row] -= multiplier * b[t];
}
