// Nine-point stencil on a plane with a border of one. A block of 64 threads makes 16 rows of 64
// columns from a tile in shared memory; blockIdx.x counts bands of 16 rows, so consecutive blocks
// lie below each other.
#include "demarc_kernel.cuh"

constexpr int block_columns = 64;
constexpr int block_rows = 16;

DEMARC_KERNEL stencil9(const float* in, float* out, int pitch, float centre, float cardinal,
                       float diagonal) {
  __shared__ float tile[block_rows + 2][block_columns + 2];
  const int thread = threadIdx.x;
  const float* corner = in + blockIdx.x * block_rows * pitch + blockIdx.y * block_columns;
  for (int row = 0; row < block_rows + 2; ++row)
    tile[row][thread + 1] = corner[row * pitch + thread + 1];
  if (thread == 0) {
    for (int row = 0; row < block_rows + 2; ++row) tile[row][0] = corner[row * pitch];
  }
  if (thread == block_columns - 1) {
    for (int row = 0; row < block_rows + 2; ++row) {
      tile[row][block_columns + 1] = corner[row * pitch + block_columns + 1];
    }
  }
  __syncthreads();
  float* to = out + (blockIdx.x * block_rows + 1) * pitch + blockIdx.y * block_columns + thread + 1;
  const int x = thread + 1;
  for (int row = 1; row <= block_rows; ++row) {
    const float straight =
        tile[row - 1][x] + tile[row + 1][x] + tile[row][x - 1] + tile[row][x + 1];
    const float slanted =
        tile[row - 1][x - 1] + tile[row - 1][x + 1] + tile[row + 1][x - 1] + tile[row + 1][x + 1];
    to[(row - 1) * pitch] = centre * tile[row][x] + cardinal * straight + diagonal * slanted;
  }
}
