// Separable convolution of an image with 17 taps, rows then columns, through shared memory. Every
// thread of a block owns eight main elements; one more on either side covers the halo. Outside the
// image there are zeros.
#include "demarc_kernel.cuh"

constexpr int radius = 8;
constexpr int steps = 8;

constexpr int rows_block_x = 16;
constexpr int rows_block_y = 4;
constexpr int columns_block_x = 16;
constexpr int columns_block_y = 8;

// Binomial-like weights that sum to about one; constant memory, as the taps are the same for all
// threads.
__constant__ float convsep_taps[2 * radius + 1] = {
    0.0078125f, 0.015625f, 0.0234375f, 0.03125f,  0.046875f, 0.0625f,
    0.09375f,   0.125f,    0.1875f,    0.125f,    0.09375f,  0.0625f,
    0.046875f,  0.03125f,  0.0234375f, 0.015625f, 0.0078125f};

DEMARC_KERNEL convolution_rows(float* out, const float* in, int width, int height, int pitch) {
  __shared__ float tile[rows_block_y][(steps + 2) * rows_block_x];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int base = (static_cast<int>(blockIdx.x) * steps - 1) * rows_block_x + tx;
  const int row = blockIdx.y * rows_block_y + ty;
  in += row * pitch + base;
  out += row * pitch + base;

#pragma unroll
  for (int i = 1; i <= steps; ++i) tile[ty][tx + i * rows_block_x] = in[i * rows_block_x];
  tile[ty][tx] = base >= 0 ? in[0] : 0.0f;
  tile[ty][tx + (steps + 1) * rows_block_x] =
      width - base > (steps + 1) * rows_block_x ? in[(steps + 1) * rows_block_x] : 0.0f;
  __syncthreads();

#pragma unroll
  for (int i = 1; i <= steps; ++i) {
    float sum = 0.0f;
#pragma unroll
    for (int j = -radius; j <= radius; ++j)
      sum += convsep_taps[radius - j] * tile[ty][tx + i * rows_block_x + j];
    out[i * rows_block_x] = sum;
  }
}

DEMARC_KERNEL convolution_columns(float* out, const float* in, int width, int height, int pitch) {
  // One column a row of the tile, padded by one against bank conflicts.
  __shared__ float tile[columns_block_x][(steps + 2) * columns_block_y + 1];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int column = blockIdx.x * columns_block_x + tx;
  const int base = (static_cast<int>(blockIdx.y) * steps - 1) * columns_block_y + ty;
  in += base * pitch + column;
  out += base * pitch + column;

#pragma unroll
  for (int i = 1; i <= steps; ++i)
    tile[tx][ty + i * columns_block_y] = in[i * columns_block_y * pitch];
  tile[tx][ty] = base >= 0 ? in[0] : 0.0f;
  tile[tx][ty + (steps + 1) * columns_block_y] = height - base > (steps + 1) * columns_block_y
                                                     ? in[(steps + 1) * columns_block_y * pitch]
                                                     : 0.0f;
  __syncthreads();

#pragma unroll
  for (int i = 1; i <= steps; ++i) {
    float sum = 0.0f;
#pragma unroll
    for (int j = -radius; j <= radius; ++j)
      sum += convsep_taps[radius - j] * tile[tx][ty + i * columns_block_y + j];
    out[i * columns_block_y * pitch] = sum;
  }
}
