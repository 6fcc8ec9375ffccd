// Rectified linear unit: out = max(in, 0).
#include "demarc_kernel.cuh"

DEMARC_KERNEL relu(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] > 0.0f ? in[i] : 0.0f;
}
