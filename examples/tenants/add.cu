// A program that knows nothing of Demarc: adds vectors of 256 MiB, looks at each sum, and says what
// each step took. Exit code 0: all sums are right.
//   nvcc -arch=sm_90 -O3 -o add add.cu && demarc exec --tenant a -- ./add
// `add loop` goes on for ever: a neighbour.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

__global__ void add(const float* a, const float* b, float* c) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  c[i] = a[i] + b[i];
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

// The least of so many times, in milliseconds.
void say_time(const char* what, int times, const std::function<void()>& step) {
  using Clock = std::chrono::steady_clock;
  double least = 1e9;
  for (int i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    step();
    check(cudaDeviceSynchronize(), what);
    least =
        std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::printf("%-12s %8.3f ms\n", what, least);
}

int main(int argc, char** argv) {
  constexpr std::size_t count = 64 << 20, bytes = count * sizeof(float);
  std::vector<float> numbers(count), sums(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i % 1000);
  float *a = nullptr, *b = nullptr, *c = nullptr;
  const auto launch = [&] { add<<<count / 256, 256>>>(a, b, c); };
  say_time("start", 1, [] { check(cudaFree(nullptr), "start"); });
  say_time("allocation", 1, [&] { check(cudaMalloc(&a, bytes), "allocation"); });
  check(cudaMalloc(&b, bytes), "allocation");
  check(cudaMalloc(&c, bytes), "allocation");
  say_time("to the card", 1, [&] {
    check(cudaMemcpy(a, numbers.data(), bytes, cudaMemcpyHostToDevice), "to the card");
  });
  check(cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice), "copy");
  say_time("first launch", 1, launch);
  say_time("launch", 20, launch);
  say_time("copy", 10,
           [&] { check(cudaMemcpyAsync(c, a, bytes, cudaMemcpyDeviceToDevice), "copy"); });
  launch();
  say_time("to the host", 1, [&] {
    check(cudaMemcpy(sums.data(), c, bytes, cudaMemcpyDeviceToHost), "to the host");
  });
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += sums[i] != 2 * numbers[i] ? 1 : 0;
  std::printf(wrong == 0 ? "right\n" : "%zu sums are wrong\n", wrong);
  while (argc > 1 && std::strcmp(argv[1], "loop") == 0) {
    for (int i = 0; i < 100; ++i) launch();
    check(cudaDeviceSynchronize(), "loop");
  }
  for (float* one : {a, b, c}) check(cudaFree(one), "free");
  return wrong == 0 ? 0 : 1;
}
