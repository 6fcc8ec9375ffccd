// Two vector additions, each on its half of the GPU, with the macros of Fractional GPUs.
// Build: nvcc -std=c++17 -I include -o vector_add_fgpu examples/vector_add_fgpu.cu
#include <cstdio>
#include <vector>

#include "demarc/fgpu.cuh"

FGPU_DEFINE_KERNEL(vector_add, const float* a, const float* b, float* c, int n,
                   unsigned* blocks_on_sm) {
  FGPU_BLOCK_INIT();
  FGPU_FOR_EACH_BLOCK(block) {
    const unsigned i = block.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) {
      unsigned sm;
      asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
      atomicAdd(&blocks_on_sm[sm], 1u);
    }
    if (i >= static_cast<unsigned>(n)) return;
    c[i] = a[i] + b[i];
  };
}

int main() {
  constexpr int n = 1000003;
  constexpr int threads = 256;
  constexpr int blocks = (n + threads - 1) / threads;
  constexpr int max_sms = 512;
  float *a, *b, *c;
  unsigned* used;
  cudaMalloc(&used, max_sms * sizeof(unsigned));
  std::vector<unsigned> on_sm(max_sms);
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(float));
  cudaMalloc(&c, n * sizeof(float));
  std::vector<float> x(n), y(n), z(n);
  for (int i = 0; i < n; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = static_cast<float>(2 * i % 1001);
  }
  cudaMemcpy(a, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(b, y.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  int wrong = 0;
  for (int part = 0; part < 2; ++part) {
    if (fgpu_init(part, 2) != cudaSuccess) {
      std::fprintf(stderr, "no usable GPU\n");
      return 2;
    }
    cudaMemset(c, 0xff, n * sizeof(float));
    cudaMemset(used, 0, max_sms * sizeof(unsigned));
    const cudaError_t launched = FGPU_LAUNCH_KERNEL(vector_add, blocks, threads, a, b, c, n, used);
    if (launched != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
      std::fprintf(stderr, "launch failed: %s\n", cudaGetErrorString(cudaGetLastError()));
      return 1;
    }
    cudaMemcpy(z.data(), c, n * sizeof(float), cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; ++i) wrong += z[i] != x[i] + y[i];
    cudaMemcpy(on_sm.data(), used, max_sms * sizeof(unsigned), cudaMemcpyDeviceToHost);
    int first = -1, last = -1;
    unsigned total = 0;
    for (int sm = 0; sm < max_sms; ++sm) {
      if (on_sm[sm] == 0) continue;
      if (first < 0) first = sm;
      last = sm;
      total += on_sm[sm];
    }
    std::printf("partition %d: %u blocks on SMs %d to %d, %d wrong elements\n", part, total, first,
                last, wrong);
  }
  return wrong == 0 ? 0 : 1;
}
