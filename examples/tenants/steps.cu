// A program that knows nothing of Demarc and speaks as the scripts of examples/pytorch do
// (timing.py): it says "ready PID"; for each line "FRAMES SECONDS" it runs that many frames, fewer
// if the time runs out, and answers with one line of JSON, the milliseconds of each and a sum of
// the last output. A frame: a blur of a picture of 4096 x 4096 in eight passes, and a sum of its
// rows. `steps copies` copies 256 MiB to the card, on it and back without end, and says how often:
// a neighbour.
//   nvcc -arch=sm_90 -O3 -o steps steps.cu && demarc exec --tenant a -- ./steps
#include <cuda_runtime.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

constexpr int width = 4096;
constexpr std::size_t pixels = std::size_t{width} * width;

__global__ void blur(const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  const int left = x == 0 ? x : x - 1, right = x == width - 1 ? x : x + 1;
  const int above = y == 0 ? y : y - 1, below = y == width - 1 ? y : y + 1;
  const auto at = [&](int row, int column) { return from[std::size_t(row) * width + column]; };
  to[std::size_t(y) * width + x] =
      0.2f * (at(y, x) + at(y, left) + at(y, right) + at(above, x) + at(below, x));
}

__global__ void sum_rows(const float* from, float* sums) {
  float sum = 0;
  for (int x = threadIdx.x; x < width; x += blockDim.x)
    sum += from[std::size_t(blockIdx.x) * width + x];
  for (int step = 16; step != 0; step /= 2) sum += __shfl_down_sync(~0U, sum, step);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

volatile std::sig_atomic_t to_end = 0;

// A client of MPS that a signal ends while it has work on the card ends the others' work, outside
// of a tenant: it waits first.
void copy_for_ever() {
  if (std::getenv("DEMARC_TENANT") == nullptr) std::signal(SIGTERM, [](int) { to_end = 1; });
  constexpr std::size_t bytes = std::size_t{256} << 20;
  void *host = nullptr, *a = nullptr, *b = nullptr;
  check(cudaMallocHost(&host, bytes), "host memory");
  std::memset(host, 1, bytes);
  check(cudaMalloc(&a, bytes), "memory");
  check(cudaMalloc(&b, bytes), "memory");
  std::printf("ready %d\n", static_cast<int>(::getpid()));
  auto told = Clock::now();
  for (long count = 1; to_end == 0; ++count) {
    check(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice), "to the card");
    for (int i = 0; i < 16; ++i)
      check(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice), "copy");
    check(cudaMemcpyAsync(host, b, bytes, cudaMemcpyDeviceToHost), "to the host");
    check(cudaDeviceSynchronize(), "copies");
    if (milliseconds_since(told) < 100) continue;
    told = Clock::now();
    std::printf("at %ld\n", count);
  }
}

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc > 1 && std::strcmp(argv[1], "copies") == 0) {
    copy_for_ever();
    return 0;
  }
  std::vector<float> picture(pixels), sums(width);
  for (std::size_t i = 0; i < pixels; ++i) picture[i] = static_cast<float>(i * 7 % 1000);
  float *one = nullptr, *other = nullptr, *rows = nullptr;
  check(cudaMalloc(&one, pixels * sizeof(float)), "memory");
  check(cudaMalloc(&other, pixels * sizeof(float)), "memory");
  check(cudaMalloc(&rows, width * sizeof(float)), "memory");
  const auto frame = [&] {
    for (int pass = 0; pass < 4; ++pass) {
      blur<<<dim3(width / 256, width), 256>>>(one, other);
      blur<<<dim3(width / 256, width), 256>>>(other, one);
    }
    sum_rows<<<width, 32>>>(one, rows);
    check(cudaMemcpy(sums.data(), rows, width * sizeof(float), cudaMemcpyDeviceToHost), "frame");
  };
  check(cudaMemcpy(one, picture.data(), pixels * sizeof(float), cudaMemcpyHostToDevice),
        "to the card");
  for (int i = 0; i < 20; ++i) frame();
  check(cudaMemcpy(one, picture.data(), pixels * sizeof(float), cudaMemcpyHostToDevice),
        "to the card");
  std::printf("ready %d\n", static_cast<int>(::getpid()));
  long frames = 0;
  double seconds = 0;
  while (std::scanf("%ld %lf", &frames, &seconds) == 2) {
    std::printf("{\"times\": [");
    const auto begin = Clock::now();
    for (long i = 0; i < frames && (i == 0 || milliseconds_since(begin) < seconds * 1e3); ++i) {
      const auto start = Clock::now();
      frame();
      std::printf("%s%.6f", i == 0 ? "" : ", ", milliseconds_since(start));
    }
    unsigned long hash = 1469598103934665603UL;
    for (const float sum : sums) {
      unsigned bits = 0;
      std::memcpy(&bits, &sum, sizeof bits);
      hash = (hash ^ bits) * 1099511628211UL;
    }
    std::printf("], \"sha256\": \"%016lx\"}\n", hash);
  }
  return 0;
}
