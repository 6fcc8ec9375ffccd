// What a neighbour on another card does to a victim in coloured memory. The victim runs on all SMs
// of card 0, in colour 0 of two; the neighbour on card 1 reads or writes, over the link, memory of
// card 0: plain, of the other colour, of the victim's colour. Prints the mean and the 99th
// percentile of 1000 kernels of the victim, and per cent over those without a neighbour.
//   nvcc -arch=sm_90 -O3 -I include -o remote_neighbour remote_neighbour.cu libdemarc.so -lcuda &&
//   ./remote_neighbour
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

#include "demarc/card/colored.cuh"
#include "demarc/demarc.h"

using Layout = demarc::colored_layout<demarc::remainders>;
using Span = demarc::colored_span<unsigned, demarc::remainders>;

constexpr unsigned long long large = 512ULL << 20, in_l2 = 8ULL << 20;

static void need(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s failed: %s; CUDA: %s\n", what, demarc_error(),
               cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}

__global__ void read_colored(Span data, unsigned long long vectors, unsigned* sums) {
  unsigned sum = 0;
  const unsigned long long step = 1ULL * gridDim.x * blockDim.x;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step)
    sum += data.vector<uint4>(i).x;
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
__global__ void write_colored(Span data, unsigned long long vectors) {
  const unsigned long long step = 1ULL * gridDim.x * blockDim.x;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step)
    data.vector<uint4>(i) = make_uint4(1, 2, 3, 4);
}
__global__ void read_plain(const uint4* data, unsigned long long vectors, unsigned* sums) {
  unsigned sum = 0;
  const unsigned long long step = 1ULL * gridDim.x * blockDim.x;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step)
    sum += data[i].x;
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
__global__ void write_plain(uint4* data, unsigned long long vectors) {
  const unsigned long long step = 1ULL * gridDim.x * blockDim.x;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step)
    data[i] = make_uint4(1, 2, 3, 4);
}
__global__ void places_of(Span data, unsigned long long bytes, unsigned long long* places) {
  const unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i * 4096 < bytes) places[i] = reinterpret_cast<unsigned long long>(&data[i * 1024]);
}

struct Colored {
  Span span;
  Layout layout;
};

static Colored colored(demarc_pool* pool, unsigned share, unsigned long long bytes) {
  demarc_buffer* buffer = nullptr;
  need(demarc_buffer_create(pool, share, bytes, &buffer) == 0, "a coloured buffer");
  demarc_remainder_layout words;
  need(demarc_buffer_remainder_layout(buffer, &words) == 0, "the layout");
  Layout layout;
  layout.base = words.base, layout.first = words.first, layout.table = words.table,
  layout.pages = words.pages;
  layout.chunk_shift = words.chunk_shift, layout.page_shift = words.page_shift,
  layout.pattern_bits = words.pattern_bits;
  layout.end = words.end, layout.reciprocal = words.reciprocal,
  layout.reciprocal_shift = words.reciprocal_shift;
  layout.skipped = words.skipped;
  return {Span(layout, bytes / 4), layout};
}

// Lets card 1 reach all pages of the buffer, and those of its tables.
static void let_card_1_reach(const Colored& buffer, unsigned long long bytes) {
  const unsigned long long count = bytes / 4096;
  unsigned long long* places = nullptr;
  need(cudaMallocManaged(&places, count * 8) == cudaSuccess, "memory");
  places_of<<<(count + 255) / 256, 256>>>(buffer.span, bytes, places);
  need(cudaDeviceSynchronize() == cudaSuccess, "finding pages");
  std::set<unsigned long long> pages = {buffer.layout.table >> 21, buffer.layout.pages >> 21};
  for (unsigned long long i = 0; i < count; ++i) pages.insert(places[i] >> 21);
  for (const unsigned long long page : pages) {
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUresult given = cuMemSetAccess(page << 21, 2U << 20, &access, 1);
    if (given != CUDA_SUCCESS)
      std::fprintf(stderr, "page %llx: error %d\n", page << 21, given), std::exit(1);
  }
  cudaFree(places);
}

struct Times {
  double mean, p99;
};

template <class Launch>
static Times time_victim(cudaStream_t stream, Launch launch) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  std::vector<float> times;
  for (int i = 0; i < 1050; ++i) {
    cudaEventRecord(begin, stream);
    launch();
    cudaEventRecord(end, stream);
    need(cudaEventSynchronize(end) == cudaSuccess, "the victim");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (i >= 50) times.push_back(ms * 1000);
  }
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const float one : times) sum += one;
  return {sum / times.size(), times[times.size() * 99 / 100]};
}

int main() {
  need(cudaSetDevice(0) == cudaSuccess && cudaFree(nullptr) == cudaSuccess, "card 0");
  demarc_card* card = nullptr;
  need(demarc_open(0, &card) == 0, "demarc_open");
  const demarc_share shares[] = {{1, 0}, {2, 0}};
  demarc_pool* pool = nullptr;
  need(demarc_pool_create_described(card, nullptr, 2, 16ULL << 30, shares, 2, &pool) == 0,
       "a pool");
  const Colored victim = colored(pool, 0, large), same = colored(pool, 0, large),
                other = colored(pool, 1, large);
  void* plain = nullptr;
  unsigned* sums = nullptr;
  need(cudaMalloc(&plain, large) == cudaSuccess &&
           cudaMalloc(&sums, 132 * 8 * 256 * 4) == cudaSuccess,
       "memory");
  cudaMemset(plain, 0, large);
  write_colored<<<132 * 8, 256>>>(victim.span, large / 16);
  write_colored<<<132 * 8, 256>>>(same.span, large / 16);
  write_colored<<<132 * 8, 256>>>(other.span, large / 16);
  need(cudaDeviceSynchronize() == cudaSuccess, "filling");
  let_card_1_reach(same, large);
  let_card_1_reach(other, large);
  cudaSetDevice(1);
  need(cudaDeviceEnablePeerAccess(0, 0) == cudaSuccess, "peer access");
  unsigned* far_sums = nullptr;
  need(cudaMalloc(&far_sums, 132 * 8 * 256 * 4) == cudaSuccess, "memory of card 1");
  cudaStream_t far_stream, stream;
  cudaStreamCreateWithFlags(&far_stream, cudaStreamNonBlocking);
  cudaSetDevice(0);
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);

  struct Neighbour {
    const char* name;
    int kind;  // 0 none, 1 plain, 2 the other colour, 3 the victim's
    bool writes;
  };
  const Neighbour neighbours[] = {{"none", 0, false},
                                  {"reads plain", 1, false},
                                  {"reads other colour", 2, false},
                                  {"reads same colour", 3, false},
                                  {"writes plain", 1, true},
                                  {"writes other colour", 2, true},
                                  {"writes same colour", 3, true},
                                  {"none again", 0, false}};
  Times alone[3] = {};
  std::printf(
      "us, mean / p99 (per cent over none)  GB/s of the neighbour\n%-22s %-28s %-28s %-28s\n",
      "neighbour", "reads 512 MiB", "reads 8 MiB in the L2", "writes 512 MiB");
  for (const Neighbour& one : neighbours) {
    std::printf("%-22s", one.name);
    for (int kind = 0; kind < 3; ++kind) {
      std::atomic<bool> stop{one.kind == 0};
      std::atomic<long> rounds{0};
      std::thread flood([&] {
        cudaSetDevice(1);
        const auto& span = one.kind == 2 ? other.span : same.span;
        while (!stop) {
          for (int i = 0; i < 4; ++i) {
            if (one.kind == 1 && !one.writes)
              read_plain<<<132 * 8, 256, 0, far_stream>>>(static_cast<uint4*>(plain), large / 16,
                                                          far_sums);
            if (one.kind == 1 && one.writes)
              write_plain<<<132 * 8, 256, 0, far_stream>>>(static_cast<uint4*>(plain), large / 16);
            if (one.kind > 1 && !one.writes)
              read_colored<<<132 * 8, 256, 0, far_stream>>>(span, large / 16, far_sums);
            if (one.kind > 1 && one.writes)
              write_colored<<<132 * 8, 256, 0, far_stream>>>(span, large / 16);
          }
          need(cudaStreamSynchronize(far_stream) == cudaSuccess, "the neighbour");
          rounds += 4;
        }
      });
      while (one.kind != 0 && rounds < 4) std::this_thread::yield();
      const long before = rounds;
      const auto start = std::chrono::steady_clock::now();
      const Times times = time_victim(stream, [&] {
        if (kind == 0) read_colored<<<132 * 8, 256, 0, stream>>>(victim.span, large / 16, sums);
        if (kind == 1)
          for (int i = 0; i < 1; ++i)
            read_colored<<<132 * 8, 256, 0, stream>>>(victim.span, in_l2 / 16, sums);
        if (kind == 2) write_colored<<<132 * 8, 256, 0, stream>>>(victim.span, large / 16);
      });
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const double rate = static_cast<double>(rounds - before) * large / seconds / 1e9;
      stop = true;
      flood.join();
      if (one.kind == 0 && alone[kind].mean == 0) alone[kind] = times;
      char cell[64];
      std::snprintf(cell, sizeof cell, "%.1f/%.1f (%+.1f/%+.1f) %.0f", times.mean, times.p99,
                    (times.mean / alone[kind].mean - 1) * 100,
                    (times.p99 / alone[kind].p99 - 1) * 100, rate);
      std::printf(" %-28s", cell);
    }
    std::printf("\n");
  }
  return 0;
}
