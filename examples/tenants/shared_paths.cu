// What tenants of one card share besides caches and memory. Alone or as a victim it prints the
// times of long kernels that live on one thing each: data that the L1 holds, 32 KiB of constants,
// 64 KiB of code, shared memory; mean and worst of 50 launches. As a neighbour, without end:
//   launches        kernels that do nothing, one after the other
//   code            kernels of 16 KiB of code each
//   compute         arithmetic in registers
//   loads [MIB]     goes through that much memory (128) by loads
//   copies [MIB]    the same by cp.async
//   nvcc -gencode arch=compute_90,code=[sm_90,compute_90] -O3 -std=c++17 -o shared_paths
//     shared_paths.cu
//   demarc exec --tenant b -- ./shared_paths copies &
//   demarc exec --tenant a -- ./shared_paths
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "long_code.cuh"

constexpr int blocks = 66, threads = 256, warm_up = 10, launches = 50;
constexpr int constants = 8192, words_of_l1 = 8192;

__constant__ float constant[constants];

__global__ void live_on_l1(const float* data, float* to, int trips) {
  float sum = 0;
  for (int i = 0; i < trips; ++i) sum += data[(threadIdx.x + i * 32) % words_of_l1];
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void live_on_constants(float* to, int trips) {
  float sum = 0;
  for (int i = 0; i < trips; ++i) sum += constant[i * 16 % constants];
  to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void live_on_code(float* to, int trips) {
  float x = threadIdx.x;
  for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
    for (int i = 0; i < 4096; ++i) x = x * (1 + i * 0.0001f) + (0.5f + i);
  }
  to[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void live_on_shared_memory(float* to, int trips) {
  __shared__ float tile[threads];
  float x = threadIdx.x;
  tile[threadIdx.x] = x;
  for (int i = 0; i < trips; ++i) {
    __syncthreads();
    x += tile[(threadIdx.x + i) % threads];
  }
  to[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void nothing() {}

__global__ void compute(float* to) {
  float x = threadIdx.x, y = x + 1, z = y + 1, w = z + 1;
  for (int i = 0; i < 20000; ++i) {
    x = x * 1.0001f + 0.5f;
    y = y * 1.0001f + 0.5f;
    z = z * 1.0001f + 0.5f;
    w = w * 1.0001f + 0.5f;
  }
  to[blockIdx.x * blockDim.x + threadIdx.x] = x + y + z + w;
}

__global__ void load_through(const uint4* data, std::size_t count, unsigned* to) {
  unsigned sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * blockDim.x) {
    const uint4 value = data[i];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  if (sum == 12345) *to = sum;
}

__global__ void copy_through(const uint4* data, std::size_t count, unsigned* to) {
  constexpr int stages = 4, width = 512;
  __shared__ uint4 tile[stages * width];
  int stage = 0;
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * blockDim.x) {
    __pipeline_memcpy_async(&tile[threadIdx.x + width * (stage++ % stages)], data + i,
                            sizeof *data);
    __pipeline_commit();
    __pipeline_wait_prior(stages - 1);
  }
  __pipeline_wait_prior(0);
  __syncthreads();
  if (tile[threadIdx.x].x == 12345) *to = 1;
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

template <class Type>
Type* zeros(std::size_t bytes) {
  Type* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "memory");
  check(cudaMemset(memory, 0, bytes), "zeros");
  return memory;
}

[[noreturn]] void be_neighbour(const std::string& what, std::size_t mebibytes) {
  if (mebibytes == 0) {
    std::fprintf(stderr, "%s: how many MiB? a number of 1 or more was expected\n", what.c_str());
    std::exit(1);
  }
  const std::size_t count = (mebibytes << 20) / sizeof(uint4);
  const uint4* data = zeros<uint4>(mebibytes << 20);
  float* to = zeros<float>(1 << 20);
  for (long said = 1;; ++said) {
    for (int i = 0; i < 100; ++i) {
      if (what == "launches") {
        nothing<<<blocks, threads>>>();
      } else if (what == "code") {
        launch_long_code(i, to, blocks, threads, nullptr);
      } else if (what == "compute") {
        compute<<<8 * blocks, threads>>>(to);
      } else if (what == "loads") {
        load_through<<<4 * blocks, 512>>>(data, count, reinterpret_cast<unsigned*>(to));
      } else if (what == "copies") {
        copy_through<<<4 * blocks, 512>>>(data, count, reinterpret_cast<unsigned*>(to));
      } else {
        std::fprintf(stderr, "%s: there are launches, code, compute, loads and copies\n",
                     what.c_str());
        std::exit(1);
      }
    }
    check(cudaDeviceSynchronize(), what.c_str());
    std::printf("at %ld\n", said);
    std::fflush(stdout);
  }
}

int main(int count, char** arguments) {
  if (count > 1)
    be_neighbour(arguments[1], count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 128);
  const float* data = zeros<float>(words_of_l1 * sizeof(float));
  float* to = zeros<float>(1 << 20);
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  for (const std::string kind : {"L1", "constants", "code", "shared memory"}) {
    std::vector<float> times;
    for (int i = 0; i < warm_up + launches; ++i) {
      float milliseconds = 0;
      check(cudaEventRecord(begin), "an event");
      if (kind == "L1") live_on_l1<<<blocks, threads>>>(data, to, 20000);
      if (kind == "constants") live_on_constants<<<blocks, threads>>>(to, 20000);
      if (kind == "code") live_on_code<<<blocks, 128>>>(to, 60);
      if (kind == "shared memory") live_on_shared_memory<<<blocks, threads>>>(to, 10000);
      check(cudaEventRecord(end), "an event");
      check(cudaDeviceSynchronize(), kind.c_str());
      check(cudaEventElapsedTime(&milliseconds, begin, end), "times");
      if (i >= warm_up) times.push_back(milliseconds * 1000);
    }
    std::sort(times.begin(), times.end());
    float sum = 0;
    for (const float time : times) sum += time;
    std::printf("%-16s %.1f us, worst %.1f\n", kind.c_str(), sum / launches, times.back());
  }
}
