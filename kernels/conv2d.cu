// 3 x 3 convolution of an image; the border of the output keeps its values.
#include "demarc_kernel.cuh"

DEMARC_KERNEL conv2d(const float* in, float* out, int rows, int columns) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < 1 || j < 1 || i >= rows - 1 || j >= columns - 1) return;
  const float* up = in + (i - 1) * columns + j;
  const float* middle = up + columns;
  const float* down = middle + columns;
  out[i * columns + j] = 0.2f * up[-1] - 0.3f * up[0] + 0.4f * up[1] +              //
                         0.5f * middle[-1] + 0.6f * middle[0] + 0.7f * middle[1] +  //
                         -0.8f * down[-1] - 0.9f * down[0] + 0.1f * down[1];
}
