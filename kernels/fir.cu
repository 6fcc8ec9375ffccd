// Finite impulse response filter: out[i] = sum of taps[t] * in[i - t]; samples before the first
// come from `history`, latest first.
#include "demarc_kernel.cuh"

DEMARC_KERNEL fir(const float* in, float* out, const float* taps, const float* history,
                  int tap_count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < tap_count; ++t) sum += taps[t] * (i >= t ? in[i - t] : history[t - i - 1]);
  out[i] = sum;
}
