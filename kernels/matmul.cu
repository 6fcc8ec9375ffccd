// C = A B for square row-major matrices: one element a thread from global memory, through
// shared-memory tiles, and on tensor cores (f16 inputs, f32 sums).
#include "demarc_kernel.cuh"

constexpr int tile = 16;

DEMARC_KERNEL matmul_naive(const float* __restrict__ a, const float* __restrict__ b,
                           float* __restrict__ c, int n) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

// n must be a multiple of 16.
DEMARC_KERNEL matmul_tiled(const float* __restrict__ a, const float* __restrict__ b,
                           float* __restrict__ c, int n) {
  __shared__ float tile_a[tile][tile];
  __shared__ float tile_b[tile][tile];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int row = blockIdx.y * tile + ty;
  const int column = blockIdx.x * tile + tx;
  float sum = 0.0f;
  for (int k = 0; k < n; k += tile) {
    tile_a[ty][tx] = a[row * n + k + tx];
    tile_b[ty][tx] = b[(k + ty) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < tile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// One warp makes a 16 x 8 piece of C with mma.m16n8k8; n must be a multiple of 16. `a` and `b` hold
// f16 bit patterns. Fragments as the PTX manual lays them out: lane = 4 * group + member.
DEMARC_KERNEL matmul_mma(const unsigned short* __restrict__ a, const unsigned short* __restrict__ b,
                         float* __restrict__ c, int n) {
  const int lane = threadIdx.x;
  const int group = lane / 4;
  const int member = lane % 4;
  const int row = blockIdx.y * 16 + group;
  const int column = blockIdx.x * 8;
  float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
  for (int k = 0; k < n; k += 8) {
    // Two neighbours of a row of A in one word.
    const unsigned a0 = *reinterpret_cast<const unsigned*>(a + row * n + k + 2 * member);
    const unsigned a1 = *reinterpret_cast<const unsigned*>(a + (row + 8) * n + k + 2 * member);
    const unsigned low = b[(k + 2 * member) * n + column + group];
    const unsigned high = b[(k + 2 * member + 1) * n + column + group];
    const unsigned b0 = low | (high << 16);
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
        "%1, %2, %3};"
        : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
        : "r"(a0), "r"(a1), "r"(b0));
  }
  float* out = c + row * n + column + 2 * member;
  out[0] = c0;
  out[1] = c1;
  out[8 * n] = c2;
  out[8 * n + 1] = c3;
}
