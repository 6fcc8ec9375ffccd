// What tenants of one card share besides caches and memory. Alone or as a victim it prints the
// times of kernels that live on one thing each: data that the L1 holds, 32 KiB of constants, 48 to
// 192 KiB of code, shared memory, 8 MiB from the L2, 1 GiB from the DRAM, a line in each of some
// pages, and 20 launches; mean and worst of 50. As a neighbour, without end:
//   launches        kernels that do nothing, one after the other
//   code            kernels of 16 KiB of code each
//   compute         arithmetic in registers
//   loads [MIB]     goes through that much memory (128) by loads
//   adds [MIB]      the same by loads and stores
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
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "long_code.cuh"

constexpr int blocks = 66, threads = 256, warm_up = 10, launches = 50;
constexpr int constants = 8192, words_of_l1 = 8192;
constexpr int instructions_of_kib = 64;
constexpr std::size_t l2_bytes = 8 << 20, dram_bytes = 1 << 30, page_words = 512 << 10;

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

template <int kib>
__global__ void live_on_code(float* to, int trips) {
  float x = threadIdx.x;
  for (int trip = 0; trip < trips; ++trip) {
#pragma unroll
    for (int i = 0; i < kib * instructions_of_kib; ++i) x = x * (1 + i * 0.0001f) + (0.5f + i);
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

// One thread of a block, one load after the other: of a line in each of `pages` pages of 2 MiB.
__global__ void live_on_pages(const unsigned* data, unsigned pages, int trips, unsigned* to) {
  unsigned page = blockIdx.x;
  for (int i = 0; i < trips; ++i) {
    page = (page * 5 + 1) % pages;
    page += __ldcg(data + page * page_words + (page & 1023) * 64);
  }
  if (page == 123456789) *to = page;
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

__global__ void load_through(const uint4* data, std::size_t count, unsigned* to, int rounds) {
  unsigned sum = 0;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
         i += std::size_t(gridDim.x) * blockDim.x) {
      const uint4 value = __ldcg(data + i);
      sum += value.x ^ value.y ^ value.z ^ value.w;
    }
  }
  if (sum == 12345) *to = sum;
}

__global__ void add_through(uint4* data, std::size_t count) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * blockDim.x) {
    const uint4 value = data[i];
    data[i] = make_uint4(value.x + 1, value.y + 1, value.z + 1, value.w + 1);
  }
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
  uint4* data = zeros<uint4>(mebibytes << 20);
  float* to = zeros<float>(4 << 20);
  for (long said = 1;; ++said) {
    for (int i = 0; i < 100; ++i) {
      if (what == "launches") {
        nothing<<<blocks, threads>>>();
      } else if (what == "code") {
        launch_long_code(i, to, blocks, threads, nullptr);
      } else if (what == "compute") {
        compute<<<8 * blocks, threads>>>(to);
      } else if (what == "loads") {
        load_through<<<4 * blocks, 512>>>(data, count, reinterpret_cast<unsigned*>(to), 1);
      } else if (what == "adds") {
        add_through<<<16 * blocks, 512>>>(data, count);
      } else if (what == "copies") {
        copy_through<<<4 * blocks, 512>>>(data, count, reinterpret_cast<unsigned*>(to));
      } else {
        std::fprintf(stderr, "%s: there are launches, code, compute, loads, adds and copies\n",
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
  const uint4* large = zeros<uint4>(dram_bytes);
  const auto* words = reinterpret_cast<const unsigned*>(large);
  float* to = zeros<float>(4 << 20);
  auto* sum = reinterpret_cast<unsigned*>(to);
  const std::vector<std::pair<const char*, std::function<void()>>> victims = {
      {"L1", [&] { live_on_l1<<<blocks, threads>>>(data, to, 20000); }},
      {"constants", [&] { live_on_constants<<<blocks, threads>>>(to, 20000); }},
      {"code 48 KiB", [&] { live_on_code<48><<<blocks, 128>>>(to, 80); }},
      {"code 64 KiB", [&] { live_on_code<64><<<blocks, 128>>>(to, 60); }},
      {"code 96 KiB", [&] { live_on_code<96><<<blocks, 128>>>(to, 40); }},
      {"code 192 KiB", [&] { live_on_code<192><<<blocks, 128>>>(to, 20); }},
      {"shared memory", [&] { live_on_shared_memory<<<blocks, threads>>>(to, 10000); }},
      {"L2", [&] { load_through<<<4 * blocks, 512>>>(large, l2_bytes / sizeof *large, sum, 64); }},
      {"DRAM",
       [&] { load_through<<<4 * blocks, 512>>>(large, dram_bytes / sizeof *large, sum, 1); }},
      {"32 pages", [&] { live_on_pages<<<blocks, 1>>>(words, 32, 1000, sum); }},
      {"256 pages", [&] { live_on_pages<<<blocks, 1>>>(words, 256, 1000, sum); }},
      {"20 launches",
       [] {
         for (int i = 0; i < 20; ++i) nothing<<<blocks, threads>>>();
       }},
  };
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  for (const auto& [kind, launch] : victims) {
    std::vector<float> times;
    for (int i = 0; i < warm_up + launches; ++i) {
      float milliseconds = 0;
      check(cudaEventRecord(begin), "an event");
      launch();
      check(cudaEventRecord(end), "an event");
      check(cudaDeviceSynchronize(), kind);
      check(cudaEventElapsedTime(&milliseconds, begin, end), "times");
      if (i >= warm_up) times.push_back(milliseconds * 1000);
    }
    std::sort(times.begin(), times.end());
    float total = 0;
    for (const float time : times) total += time;
    std::printf("%-16s %.1f us, worst %.1f\n", kind, total / launches, times.back());
  }
}
