// Gravity of all pairs: positions (x, y, z, mass) in tiles of shared memory, accelerations out.
#include "demarc_kernel.cuh"

constexpr int block_threads = 128;
constexpr float softening = 0.01f;  // added to squared distances

DEMARC_KERNEL nbody(const float4* __restrict__ bodies, float4* __restrict__ accelerations,
                    int count) {
  __shared__ float4 tile[block_threads];
  const int i = blockIdx.x * block_threads + threadIdx.x;
  const float4 me = bodies[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int begin = 0; begin < count; begin += block_threads) {
    tile[threadIdx.x] = bodies[begin + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int j = 0; j < block_threads; ++j) {
      const float dx = tile[j].x - me.x;
      const float dy = tile[j].y - me.y;
      const float dz = tile[j].z - me.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening);
      const float pull = tile[j].w * inverse * inverse * inverse;
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
    __syncthreads();
  }
  accelerations[i] = make_float4(ax, ay, az, 0.0f);
}
