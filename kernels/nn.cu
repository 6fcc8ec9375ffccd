// Nearest neighbour: the distance of every record (latitude, longitude) from a point.
#include "demarc_kernel.cuh"

DEMARC_KERNEL nearest_distance(const float2* __restrict__ records, float* __restrict__ distances,
                               int count, float latitude, float longitude) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float2 record = records[i];
  const float north = latitude - record.x;
  const float east = longitude - record.y;
  distances[i] = sqrtf(north * north + east * east);
}
