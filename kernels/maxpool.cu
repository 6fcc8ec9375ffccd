// Max pooling of images: the largest value of every window, and where in its plane it stood.
#include "demarc_kernel.cuh"

DEMARC_KERNEL maxpool(const float* bottom, float* top, int* mask, int outputs, int height,
                      int width, int pooled_height, int pooled_width, int window, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= outputs) return;
  const int pooled_x = i % pooled_width;
  const int pooled_y = i / pooled_width % pooled_height;
  const int plane = i / (pooled_width * pooled_height);
  const float* image = bottom + plane * height * width;
  const int y0 = pooled_y * stride;
  const int x0 = pooled_x * stride;
  const int y1 = min(y0 + window, height);
  const int x1 = min(x0 + window, width);
  float largest = -3.402823466e38f;
  int place = -1;
  for (int y = y0; y < y1; ++y) {
    for (int x = x0; x < x1; ++x) {
      if (image[y * width + x] > largest) {
        place = y * width + x;
        largest = image[place];
      }
    }
  }
  top[i] = largest;
  mask[i] = place;
}
