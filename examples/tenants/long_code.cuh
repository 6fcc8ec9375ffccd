// Sixteen kernels of 16 KiB of code each, without a loop.
#pragma once

#include <cuda_runtime.h>

constexpr int long_codes = 16;

template <int number>
__global__ void long_code(float* to) {
  float x = threadIdx.x;
#pragma unroll
  for (int i = 0; i < 1024; ++i) x = x * (1 + number * 0.001f + i * 0.0001f) + (0.5f + i);
  to[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

// One of them, another for each `which` modulo 16.
template <int number = 0>
void launch_long_code(int which, float* to, int blocks, int threads, cudaStream_t stream) {
  if constexpr (number < long_codes) {
    if (which % long_codes == number) {
      long_code<number><<<blocks, threads, 0, stream>>>(to);
    } else {
      launch_long_code<number + 1>(which, to, blocks, threads, stream);
    }
  }
}
