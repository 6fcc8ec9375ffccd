// Complex 512-point transforms in place, one a block of 64 threads: three radix-8 stages with two
// exchanges through shared memory (Stockham's order: the result comes out in natural order).
#include "demarc_kernel.cuh"

constexpr int points = 512;
constexpr int block_threads = points / 8;
constexpr float pi = 3.14159265358979f;

static __device__ __forceinline__ float2 times(float2 a, float2 b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
static __device__ __forceinline__ void butterfly(float2& a, float2& b) {
  const float2 old = a;
  a = make_float2(old.x + b.x, old.y + b.y);
  b = make_float2(old.x - b.x, old.y - b.y);
}
static __device__ __forceinline__ float2 times_minus_i(float2 a) {
  return make_float2(a.y, -a.x);
}

static __device__ __forceinline__ void transform4(float2& a, float2& b, float2& c, float2& d) {
  butterfly(a, c);
  butterfly(b, d);
  d = times_minus_i(d);
  butterfly(a, b);
  butterfly(c, d);
}

// Results in the order 0, 4, 2, 6, 1, 5, 3, 7.
static __device__ __forceinline__ void transform8(float2* v) {
  constexpr float half_root = 0.70710678118654752f;
  for (int i = 0; i < 4; ++i) butterfly(v[i], v[i + 4]);
  v[5] = times(v[5], make_float2(half_root, -half_root));
  v[6] = times_minus_i(v[6]);
  v[7] = times(v[7], make_float2(-half_root, -half_root));
  transform4(v[0], v[1], v[2], v[3]);
  transform4(v[4], v[5], v[6], v[7]);
}

static __device__ __forceinline__ int reversed(int i) {
  return ((i & 1) << 2) | (i & 2) | ((i >> 2) & 1);
}

// Multiplies v[r] by the r-th power of exp(-2 pi i * within / (8 * group)).
static __device__ __forceinline__ void twiddle(float2* v, int within, int group) {
  const float angle = -2.0f * pi * static_cast<float>(within) / static_cast<float>(8 * group);
#pragma unroll
  for (int r = 1; r < 8; ++r) v[r] = times(v[r], make_float2(__cosf(angle * r), __sinf(angle * r)));
}

DEMARC_KERNEL fft512(float2* data) {
  __shared__ float2 exchange[points];
  float2* at = data + blockIdx.x * points;
  const int thread = threadIdx.x;
  float2 v[8];
#pragma unroll
  for (int r = 0; r < 8; ++r) v[r] = at[thread + r * block_threads];
  transform8(v);
#pragma unroll
  for (int group = 1; group < block_threads; group *= 8) {
    const int within = thread % group;
    const int first = (thread - within) * 8 + within;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 8; ++r) exchange[first + r * group] = v[reversed(r)];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 8; ++r) v[r] = exchange[thread + r * block_threads];
    twiddle(v, thread % (8 * group), 8 * group);
    transform8(v);
  }
#pragma unroll
  for (int r = 0; r < 8; ++r) at[thread + r * block_threads] = v[reversed(r)];
}
