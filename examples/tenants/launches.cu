// What a launch costs the thread that makes it: the time of batches of launches of an empty kernel
// with ten arguments, and of replays of a graph of one of them. Run it alone and in a tenant; the
// difference is what Demarc adds.
//   nvcc -arch=sm_90 -O3 -o launches launches.cu && ./launches && demarc exec --tenant a --
//   ./launches
// `launches pinned` has pinned host memory, which makes Demarc look at the arguments.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr int batches = 200;
constexpr int batch = 500;  // launches, fewer than the driver queues before it waits

__global__ void nothing(float* a, float* b, float* c, float* d, long e, long f, long g, int h,
                        int i, int j) {
  if (j == -1) a[e] = b[f] + c[g] + d[h] + static_cast<float>(i);
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

// Nanoseconds of one call, of each batch.
template <class Call>
void measure(const char* what, Call call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < batches + 10; ++i) {
    const auto begin = Clock::now();
    for (int k = 0; k < batch; ++k) call();
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    check(cudaDeviceSynchronize(), what);
    if (i >= 10) times.push_back(ns / batch);
  }
  std::sort(times.begin(), times.end());
  std::printf("%s: median %.0f ns, least %.0f, p99 %.0f, of %d batches of %d\n", what,
              times[batches / 2], times.front(), times[batches * 99 / 100], batches, batch);
}

int main(int argc, char** argv) {
  float* memory = nullptr;
  void* pinned = nullptr;
  check(cudaMalloc(&memory, 4096), "memory");
  if (argc > 1 && std::strcmp(argv[1], "pinned") == 0)
    check(cudaMallocHost(&pinned, 4096), "host memory");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "a stream");
  const auto launch = [&] {
    nothing<<<1, 32, 0, stream>>>(memory, memory, memory, memory, 1, 2, 3, 4, 5, 6);
  };
  launch();
  check(cudaDeviceSynchronize(), "launch");
  measure("launch", launch);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  launch();
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&ready, graph, 0), "graph");
  measure("replay", [&] { check(cudaGraphLaunch(ready, stream), "replay"); });
  return 0;
}
