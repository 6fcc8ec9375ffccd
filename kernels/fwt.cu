// Fast Walsh transform (Hadamard order), in place: radix-4 passes over global memory down to
// stretches of 2048, which are finished in shared memory.
#include "demarc_kernel.cuh"

constexpr int stretch = 2048;

// `stride` is the distance of the four elements of a butterfly; one thread a butterfly.
DEMARC_KERNEL fwt_global(float* data, int stride) {
  const int butterfly = blockIdx.x * blockDim.x + threadIdx.x;
  const int low = butterfly & (stride - 1);
  float* at = data + ((butterfly - low) << 2) + low;
  const float d0 = at[0];
  const float d1 = at[stride];
  const float d2 = at[2 * stride];
  const float d3 = at[3 * stride];
  const float s0 = d0 + d2;
  const float s1 = d1 + d3;
  const float s2 = d0 - d2;
  const float s3 = d1 - d3;
  at[0] = s0 + s1;
  at[stride] = s0 - s1;
  at[2 * stride] = s2 + s3;
  at[3 * stride] = s2 - s3;
}

DEMARC_KERNEL fwt_shared(float* data) {
  __shared__ float work[stretch];
  float* at = data + blockIdx.x * stretch;
  for (int i = threadIdx.x; i < stretch; i += blockDim.x) work[i] = at[i];
  for (int half = stretch / 2; half > 0; half /= 2) {
    __syncthreads();
    for (int i = threadIdx.x; i < stretch / 2; i += blockDim.x) {
      const int low = i & (half - 1);
      const int first = 2 * (i - low) + low;
      const float a = work[first];
      const float b = work[first + half];
      work[first] = a + b;
      work[first + half] = a - b;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < stretch; i += blockDim.x) at[i] = work[i];
}
