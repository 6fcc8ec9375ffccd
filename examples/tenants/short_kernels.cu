// What short kernels feel of a neighbour that streams through its memory. Alone or as a victim it
// replays graphs of 128 kernels each and prints microseconds per kernel, mean and worst of 100
// replays: kernels that do nothing (one block, 66 blocks), that touch a word per thread, that
// follow four pointers, and sixteen that have 16 KiB of code each. As a neighbour (`read`, `write`,
// `both`) it goes through 2 GiB without end.
//   nvcc -gencode arch=compute_90,code=[sm_90,compute_90] -O3 -std=c++17 -o short_kernels
//     short_kernels.cu
//   demarc exec --tenant b -- ./short_kernels both &
//   demarc exec --tenant a --overlap-launches -- ./short_kernels
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "long_code.cuh"

constexpr int kernels = 128, warm_up = 20, replays = 100;
constexpr int blocks = 66, threads = 128;

__global__ void nothing() {}

__global__ void touch(const float* from, float* to) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + 1;
}

__global__ void follow(const int* next, int* to) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < 4; ++step) at = next[at];
  to[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void stream_through(uint4* data, std::size_t count, bool reads, bool writes) {
  unsigned sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count;
       i += std::size_t(gridDim.x) * blockDim.x) {
    uint4 value = make_uint4(i, i, i, i);
    if (reads) value = data[i];
    sum += value.x ^ value.y ^ value.z ^ value.w;
    value.x += 1;
    if (writes) data[i] = value;
  }
  if (!writes && sum == 12345) data[0].x = sum;
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

void be_neighbour(const std::string& what) {
  constexpr std::size_t bytes = std::size_t{2} << 30;
  const bool both = what == "both";
  if (!both && what != "read" && what != "write") {
    std::fprintf(stderr, "%s: there are read, write and both\n", what.c_str());
    std::exit(1);
  }
  uint4* data = nullptr;
  check(cudaMalloc(&data, bytes), "memory");
  for (bool said = false;; said = true) {
    for (int i = 0; i < 4; ++i)
      stream_through<<<528, 512>>>(data, bytes / sizeof(uint4), both || what == "read",
                                   both || what == "write");
    check(cudaDeviceSynchronize(), "a pass over the memory");
    if (!said) std::printf("at 4\n"), std::fflush(stdout);
  }
}

int main(int count, char** arguments) {
  if (count > 1) be_neighbour(arguments[1]);
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaStreamCreate(&stream), "a stream");
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  float *from = nullptr, *to = nullptr;
  check(cudaMalloc(&from, 1 << 20), "memory");
  check(cudaMalloc(&to, 1 << 20), "memory");
  check(cudaMemset(from, 0, 1 << 20), "zeros");
  for (const std::string kind : {"empty, one block", "empty", "touch", "follow", "long code"}) {
    const auto launch = [&](int i) {
      if (kind == "empty, one block") nothing<<<1, 32, 0, stream>>>();
      if (kind == "empty") nothing<<<blocks, threads, 0, stream>>>();
      if (kind == "touch") touch<<<blocks, threads, 0, stream>>>(from, to);
      if (kind == "follow")
        follow<<<blocks, threads, 0, stream>>>(reinterpret_cast<int*>(from),
                                               reinterpret_cast<int*>(to));
      if (kind == "long code") launch_long_code(i, to, blocks, threads, stream);
    };
    for (int i = 0; i < 16; ++i) launch(i);
    check(cudaStreamSynchronize(stream), kind.c_str());
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replayed = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "a capture");
    for (int i = 0; i < kernels; ++i) launch(i);
    check(cudaStreamEndCapture(stream, &graph), "a capture");
    check(cudaGraphInstantiate(&replayed, graph, 0), "a graph");
    std::vector<float> times;
    for (int i = 0; i < warm_up + replays; ++i) {
      float milliseconds = 0;
      check(cudaEventRecord(begin, stream), "an event");
      check(cudaGraphLaunch(replayed, stream), "a graph");
      check(cudaEventRecord(end, stream), "an event");
      check(cudaStreamSynchronize(stream), kind.c_str());
      check(cudaEventElapsedTime(&milliseconds, begin, end), "times");
      if (i >= warm_up) times.push_back(milliseconds * 1000 / kernels);
    }
    std::sort(times.begin(), times.end());
    float sum = 0;
    for (const float time : times) sum += time;
    std::printf("%-16s %.2f us, p99 %.2f\n", kind.c_str(), sum / replays,
                times[replays * 99 / 100]);
  }
}
