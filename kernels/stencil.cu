// One step of a five-point stencil on a plane and of a seven-point stencil on a volume; the border
// keeps its values.
#include "demarc_kernel.cuh"

DEMARC_KERNEL stencil2d(const float* __restrict__ in, float* __restrict__ out, int width,
                        int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int at = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
    out[at] = in[at];
    return;
  }
  out[at] = 0.5f * in[at] + 0.125f * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width]);
}

DEMARC_KERNEL stencil3d(const float* __restrict__ in, float* __restrict__ out, int width,
                        int height, int depth) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  const int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  const int plane = width * height;
  const bool edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
  int at = y * width + x;
  for (int z = 0; z < depth; ++z, at += plane) {
    float value = in[at];
    if (!edge && z > 0 && z < depth - 1) {
      value = 0.4f * value + 0.1f * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width] +
                                     in[at - plane] + in[at + plane]);
    }
    out[at] = value;
  }
}
