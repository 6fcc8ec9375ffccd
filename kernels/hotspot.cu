// Temperature of a chip: two steps of a five-point stencil in shared memory per launch. A block of
// 16 x 16 threads loads its tile with a halo of two and writes the 12 x 12 elements in the middle.
#include "demarc_kernel.cuh"

constexpr int tile_side = 16;
constexpr int halo = 2;  // = steps
constexpr int core = tile_side - 2 * halo;

DEMARC_KERNEL calculate_temp(const float* power, const float* temperature, float* result,
                             int columns, int rows, float capacity, float rx, float ry, float rz,
                             float ambient) {
  __shared__ float now[tile_side][tile_side];
  __shared__ float heat[tile_side][tile_side];
  __shared__ float next[tile_side][tile_side];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int x = core * static_cast<int>(blockIdx.x) - halo + tx;
  const int y = core * static_cast<int>(blockIdx.y) - halo + ty;
  const int at = y * columns + x;
  const bool inside = x >= 0 && x < columns && y >= 0 && y < rows;
  if (inside) {
    now[ty][tx] = temperature[at];
    heat[ty][tx] = power[at];
  }
  __syncthreads();

  // Neighbours beyond the chip are the element itself.
  const int north = y <= 0 ? ty : ty - 1;
  const int south = y >= rows - 1 ? ty : ty + 1;
  const int west = x <= 0 ? tx : tx - 1;
  const int east = x >= columns - 1 ? tx : tx + 1;
  bool computed = false;
#pragma unroll
  for (int step = 0; step < halo; ++step) {
    computed =
        inside && tx > step && tx < tile_side - 1 - step && ty > step && ty < tile_side - 1 - step;
    if (computed) {
      const float t = now[ty][tx];
      next[ty][tx] =
          t + capacity * (heat[ty][tx] + (now[south][tx] + now[north][tx] - 2.0f * t) * ry +
                          (now[ty][east] + now[ty][west] - 2.0f * t) * rx + (ambient - t) * rz);
    }
    __syncthreads();
    if (step == halo - 1) break;
    if (computed) now[ty][tx] = next[ty][tx];
    __syncthreads();
  }
  if (computed) result[at] = next[ty][tx];
}
