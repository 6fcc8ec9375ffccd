// Matrix transposition through shared memory: 32 x 32 tiles of words, and 64 x 64 tiles with 4 x 4
// words a thread.
#include "demarc_kernel.cuh"

DEMARC_KERNEL transpose_tiled(const unsigned* __restrict__ in, unsigned* __restrict__ out,
                              int width, int height) {
  __shared__ unsigned tile[32][33];  // the odd pitch keeps columns off one bank
  const int x = blockIdx.x * 32 + threadIdx.x;
  const int y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8) {
    if (x < width && y + i < height) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
  }
  __syncthreads();
  const int row = blockIdx.x * 32 + threadIdx.y;
  const int column = blockIdx.y * 32 + threadIdx.x;
  for (int i = 0; i < 32; i += 8) {
    if (column < height && row + i < width)
      out[(row + i) * height + column] = tile[threadIdx.x][threadIdx.y + i];
  }
}

// Blocks of a column of the grid take their tiles along a diagonal, so that they do not write to
// one stretch of memory. `width` is a multiple of 64.
DEMARC_KERNEL transpose_4x4(const uint4* __restrict__ in, uint4* __restrict__ out, int width) {
  __shared__ unsigned tile[64][64];
  const int blocks = width / 64;
  const int row_of_tiles = blockIdx.x;
  const int column_of_tiles = (blockIdx.x + blockIdx.y) % blocks;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int quads = width / 4;  // of a row
  for (int i = 0; i < 4; ++i) {
    const uint4 words = in[(row_of_tiles * 64 + ty * 4 + i) * quads + column_of_tiles * 16 + tx];
    tile[ty * 4 + i][tx * 4] = words.x;
    tile[ty * 4 + i][tx * 4 + 1] = words.y;
    tile[ty * 4 + i][tx * 4 + 2] = words.z;
    tile[ty * 4 + i][tx * 4 + 3] = words.w;
  }
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    const int row = ty * 4 + i;
    out[(column_of_tiles * 64 + row) * quads + row_of_tiles * 16 + tx] = make_uint4(
        tile[tx * 4][row], tile[tx * 4 + 1][row], tile[tx * 4 + 2][row], tile[tx * 4 + 3][row]);
  }
}
