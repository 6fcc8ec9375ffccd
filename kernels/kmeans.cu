// k-means in two kernels. invert_mapping turns the points from feature-minor to feature-major;
// kmeans_assign gives every point the nearest centre (squared Euclidean distance; the lowest index
// among equals).
#include "demarc_kernel.cuh"

DEMARC_KERNEL invert_mapping(const float* in, float* out, int points, int features) {
  const int point = blockIdx.x * blockDim.x + threadIdx.x;
  if (point < points) {
    for (int f = 0; f < features; ++f) out[point + points * f] = in[point * features + f];
  }
}

DEMARC_KERNEL kmeans_assign(const float* feature_major, const float* centres, int* membership,
                            int points, int clusters, int features) {
  const int point = blockIdx.x * blockDim.x + threadIdx.x;
  if (point >= points) return;
  int nearest = 0;
  float least = 3.402823466e38f;
  for (int c = 0; c < clusters; ++c) {
    float distance = 0.0f;
    for (int f = 0; f < features; ++f) {
      const float difference = feature_major[f * points + point] - centres[c * features + f];
      distance += difference * difference;
    }
    if (distance < least) {
      least = distance;
      nearest = c;
    }
  }
  membership[point] = nearest;
}
