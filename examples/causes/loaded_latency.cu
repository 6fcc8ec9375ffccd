// How long a load takes beside streams of the same kernel, and what streams get beside each other:
//
//   nvcc -arch=sm_90 -O3 -o loaded_latency loaded_latency.cu && ./loaded_latency > loaded.csv
//
// One kernel, a block of 1024 threads per SM. Some blocks follow chains of dependent loads, each to
// a line of its own in 512 MiB, and time every load by the SM's clock. The others stream through
// 2 GiB until the chains have ended: they read or write 16 bytes per thread. A line of the output:
//
//   card,probes,warps,lanes,first,first_sms,second,second_sms,ns,first_gbs,second_gbs
//
// `probes` SMs with `warps` chains of `lanes` loads at a time beside `first_sms` SMs of the first
// kind of stream (ns is the mean time of a step, until all lanes have their data); without probes,
// two kinds of streams side by side. `demarc_loaded_latency_bench` compares simulated cards with
// such tables.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int threads = 1024;
constexpr int shared_bytes = 200 * 1024;  // one block per SM
constexpr unsigned lines = 1U << 22;      // of 128 bytes, of the chains
constexpr unsigned line_words = 32;
constexpr size_t stream_vectors = (size_t{2} << 30) / sizeof(uint4);

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "loaded_latency: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ? 2 : 1);
}

// What a set of blocks does to memory.
enum class Stream : int { none, read, write };

struct Streams {
  Stream kind;
  int sms;
  uint4* buffer;
};

__device__ unsigned chains_ended;

__device__ __forceinline__ unsigned load_past_l1(const unsigned* address) {
  unsigned value;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}

// Follows `steps` links and leaves the cycles of all of them.
__device__ void follow(const unsigned* links, int warps, int lanes, int steps,
                       unsigned long long* cycles) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (warp >= warps || lane >= lanes) return;
  const unsigned start = ((blockIdx.x * 32 + warp) * 32 + lane) * 2654435761U;
  unsigned at = start & (lines - 1);
  const long long begin = clock64();
  while (clock64() - begin < 400000) {
  }  // the streams are under way
  long long all = 0;
  for (int step = 0; step < steps; ++step) {
    const long long before = clock64();
    at = load_past_l1(links + size_t{at} * line_words);
    const bool beyond = lanes == 32 ? __any_sync(~0U, at >= lines) : at >= lines;
    all += clock64() - before + (beyond ? 1 : 0);  // waits for the data of all lanes
  }
  if (lane == 0) atomicAdd(cycles, static_cast<unsigned long long>(all));
}

// Streams until all chains have ended, or for so many cycles; counts the bytes of the last three
// quarters of that time.
__device__ void stream(const Streams& streams, int block, int probes, long long most,
                       unsigned long long* bytes) {
  const size_t step = size_t(streams.sms) * blockDim.x;
  const size_t first = size_t(block) * blockDim.x + threadIdx.x;
  uint4 value = make_uint4(1, 2, 3, threadIdx.x);
  unsigned long long moved = 0;
  size_t at = first;
  const long long begin = clock64();
  for (;;) {
    const long long passed = clock64() - begin;
    if (probes > 0 ? *static_cast<volatile unsigned*>(&chains_ended) >= probes : passed >= most) {
      break;
    }
    for (int i = 0; i < 32; ++i) {
      if (streams.kind == Stream::write) {
        streams.buffer[at] = value;
      } else {
        const uint4 read = __ldcg(streams.buffer + at);
        value.x ^= read.x ^ read.y ^ read.z ^ read.w;
      }
      at += step;
      if (at >= stream_vectors) at = first;
    }
    if (probes > 0 || passed >= most / 4) moved += 32 * sizeof(uint4);
  }
  if (value.x == 0x12345678) streams.buffer[first] = value;
  atomicAdd(bytes, moved);
}

__global__ void __launch_bounds__(threads)
    roles(const unsigned* links, int probes, int warps, int lanes, int steps, Streams first,
          Streams second, long long most, unsigned long long* cycles, unsigned long long* bytes) {
  int block = static_cast<int>(blockIdx.x);
  if (block < probes) {
    follow(links, warps, lanes, steps, cycles);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&chains_ended, 1U);
    return;
  }
  block -= probes;
  if (block < first.sms) {
    stream(first, block, probes, most, bytes);
  } else {
    stream(second, block - first.sms, probes, most, bytes + 1);
  }
}

// One random cycle through all lines, the number of the next at the beginning of each.
std::vector<unsigned> random_cycle() {
  std::vector<unsigned> next(lines);
  std::iota(next.begin(), next.end(), 0U);
  std::mt19937 random(1);
  for (unsigned i = lines - 1; i > 0; --i) std::swap(next[i], next[random() % i]);  // Sattolo
  std::vector<unsigned> words(size_t{lines} * line_words, 0);
  for (unsigned i = 0; i < lines; ++i) words[size_t{i} * line_words] = next[i];
  return words;
}

class Card {
 public:
  Card() {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "no card");
    name_ = properties.name;
    sms_ = properties.multiProcessorCount;
    int kilohertz = 0;
    check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, 0), "clock rate");
    cycles_per_ns_ = kilohertz / 1e6;
    const std::vector<unsigned> words = random_cycle();
    check(cudaMalloc(&links_, words.size() * sizeof(unsigned)), "memory of the chains");
    check(cudaMemcpy(links_, words.data(), words.size() * sizeof(unsigned), cudaMemcpyHostToDevice),
          "links");
    check(cudaMalloc(&streams_, 2 * stream_vectors * sizeof(uint4)), "memory of the streams");
    check(cudaMemset(streams_, 1, 2 * stream_vectors * sizeof(uint4)), "fill");
    check(cudaMalloc(&results_, 3 * sizeof(unsigned long long)), "results");
    check(cudaFuncSetAttribute(roles, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
          "shared memory");
  }

  void measure(int probes, int warps, int lanes, Stream first, int first_sms,
               Stream second = Stream::none, int second_sms = 0) {
    if (probes + first_sms + second_sms > sms_) return;
    const unsigned none = 0;
    check(cudaMemcpyToSymbol(chains_ended, &none, sizeof none), "start");
    check(cudaMemset(results_, 0, 3 * sizeof(unsigned long long)), "start");
    const int steps = lanes == 32 ? 1000 : 4000;
    const long long most = 6000000;
    cudaEvent_t begin{};
    cudaEvent_t end{};
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    check(cudaEventRecord(begin), "event");
    roles<<<probes + first_sms + second_sms, threads, shared_bytes>>>(
        links_, probes, warps, lanes, steps, Streams{first, first_sms, streams_},
        Streams{second, second_sms, streams_ + stream_vectors}, most, results_, results_ + 1);
    check(cudaEventRecord(end), "event");
    check(cudaDeviceSynchronize(), "kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "event");
    unsigned long long results[3];
    check(cudaMemcpy(results, results_, sizeof results, cudaMemcpyDeviceToHost), "results");
    const double counted_ns = probes > 0 ? ms * 1e6 : 0.75 * most / cycles_per_ns_;
    const double chains = double(probes) * warps * (lanes == 32 ? 1 : lanes);
    const double ns = probes > 0 ? results[0] / chains / steps / cycles_per_ns_ : 0;
    const char* const names[] = {"", "read", "write"};
    std::printf("%s,%d,%d,%d,%s,%d,%s,%d,%.0f,%.0f,%.0f\n", name_.c_str(), probes, warps, lanes,
                names[int(first)], first_sms, names[int(second)], second_sms, ns,
                results[1] / counted_ns, results[2] / counted_ns);
    check(cudaEventDestroy(begin), "event");
    check(cudaEventDestroy(end), "event");
  }

 private:
  std::string name_;
  int sms_ = 0;
  double cycles_per_ns_ = 1;
  unsigned* links_ = nullptr;
  uint4* streams_ = nullptr;
  unsigned long long* results_ = nullptr;
};

}  // namespace

int main() {
  Card card;
  std::printf(
      "card,probes,warps,lanes,first,first_sms,second,second_sms,ns,first_gbs,second_gbs\n");
  card.measure(1, 1, 1, Stream::none, 0);
  for (const int sms : {16, 33, 66, 130}) card.measure(1, 1, 1, Stream::read, sms);
  for (const int sms : {16, 33, 44, 56, 66, 130}) card.measure(1, 1, 1, Stream::write, sms);
  struct Probes {
    int sms, warps, lanes;
  };
  for (const Probes p : {Probes{1, 1, 32}, Probes{64, 16, 1}, Probes{64, 4, 32}}) {
    card.measure(p.sms, p.warps, p.lanes, Stream::none, 0);
    card.measure(p.sms, p.warps, p.lanes, Stream::read, 66);
    card.measure(p.sms, p.warps, p.lanes, Stream::write, 66);
  }
  for (const Stream kind : {Stream::read, Stream::write}) {
    for (const int sms : {1, 16, 66, 132}) card.measure(0, 0, 0, kind, sms);
  }
  for (const int sms : {8, 33, 66}) {
    card.measure(0, 0, 0, Stream::read, sms, Stream::write, 66);
  }
  for (const int sms : {8, 16, 33}) {
    card.measure(0, 0, 0, Stream::read, 132 - sms, Stream::write, sms);
  }
}
