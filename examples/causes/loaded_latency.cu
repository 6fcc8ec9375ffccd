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
//
// With `kept` as its argument the program asks instead what streams leave in the L2, and what they
// get beside stores that stay there: one thread reads the same eight lines again and again, or
// stores to them and waits for the store (membar), beside 66 SMs that stream through 2 GiB or write
// 8 MiB. Then 66 SMs write 8 MiB beside 66 that read 2 GiB. The lines of its output:
//
//   card,what,beside,every_us,ns,percent_over_700_cycles,first_gbs,second_gbs
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
constexpr unsigned lines = 1U << 22;      // lines of 128 bytes, of the chains
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
  size_t vectors = stream_vectors;
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
      if (at >= streams.vectors) at = first;
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

// What the first thread does to its eight lines in each interval.
enum class Again : int { nothing, load, store };

struct Repeated {
  Again what;
  long long interval;  // cycles
  int passes;
};

// Leaves the cycles of all accesses, how many there were and how many took more than 700 cycles.
__device__ void repeat(unsigned* lines_of_thread, const Repeated& repeated,
                       unsigned long long* cycles) {
  const long long begin = clock64();
  while (clock64() - begin < 400000) {
  }  // the streams are under way
  unsigned long long all = 0;
  unsigned long long slow = 0;
  for (int pass = 0; pass < repeated.passes; ++pass) {
    const long long start = clock64();
    for (unsigned i = 0; i < 8; ++i) {
      unsigned* const address = lines_of_thread + i * line_words;
      const long long before = clock64();
      if (repeated.what == Again::store) {
        *static_cast<volatile unsigned*>(address) = i;
        __threadfence();
      } else if (load_past_l1(address) == ~0U) {
        __trap();  // waits for the data
      }
      const long long took = clock64() - before;
      if (pass == 0) continue;
      all += took;
      slow += took > 700 ? 1 : 0;
    }
    while (clock64() - start < repeated.interval) {
    }
  }
  cycles[0] = all;
  cycles[3] = slow;
}

__global__ void __launch_bounds__(threads)
    kept(unsigned* lines_of_thread, Repeated repeated, Streams first, Streams second,
         long long most, unsigned long long* cycles, unsigned long long* bytes) {
  const int probes = repeated.what == Again::nothing ? 0 : 1;
  int block = static_cast<int>(blockIdx.x);
  if (block < probes) {
    if (threadIdx.x == 0) {
      repeat(lines_of_thread, repeated, cycles);
      __threadfence();
      atomicAdd(&chains_ended, 1U);
    }
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
    check(cudaMalloc(&results_, 4 * sizeof(unsigned long long)), "results");
    check(cudaFuncSetAttribute(roles, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
          "shared memory");
    check(cudaFuncSetAttribute(kept, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
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

  void measure_kept(Again what, int every_us, Stream kind, int sms, size_t vectors,
                    Stream second = Stream::none, int second_sms = 0) {
    const unsigned none = 0;
    check(cudaMemcpyToSymbol(chains_ended, &none, sizeof none), "start");
    check(cudaMemset(results_, 0, 4 * sizeof(unsigned long long)), "start");
    const int passes = every_us < 50 ? 400 : 100;
    const long long most = 6000000;
    const bool probes = what != Again::nothing;
    const Repeated repeated{what, static_cast<long long>(every_us * 1000 * cycles_per_ns_), passes};
    kept<<<(probes ? 1 : 0) + sms + second_sms, threads, shared_bytes>>>(
        links_, repeated, Streams{kind, sms, streams_, vectors},
        Streams{second, second_sms, streams_ + stream_vectors}, most, results_, results_ + 1);
    check(cudaDeviceSynchronize(), "kernel");
    unsigned long long results[4];
    check(cudaMemcpy(results, results_, sizeof results, cudaMemcpyDeviceToHost), "results");
    const double accesses = 8.0 * (passes - 1);
    const char* const kinds[] = {"", "read", "write"};
    const char* const whats[] = {"", "load", "store"};
    std::printf("%s,%s,", name_.c_str(), whats[int(what)]);
    if (sms > 0) std::printf("%s %zu MiB", kinds[int(kind)], vectors * sizeof(uint4) >> 20);
    std::printf(",%d,", every_us);
    if (probes) {
      std::printf("%.0f,%.1f,,\n", results[0] / accesses / cycles_per_ns_,
                  100 * results[3] / accesses);
    } else {
      const double ns = 0.75 * most / cycles_per_ns_;
      std::printf(",,%.0f,%.0f\n", results[1] / ns, results[2] / ns);
    }
  }

 private:
  std::string name_;
  int sms_ = 0;
  double cycles_per_ns_ = 1;
  unsigned* links_ = nullptr;
  uint4* streams_ = nullptr;
  unsigned long long* results_ = nullptr;
};

void measure_kept(Card& card) {
  constexpr size_t in_l2 = (size_t{8} << 20) / sizeof(uint4);
  std::printf("card,what,beside,every_us,ns,percent_over_700_cycles,first_gbs,second_gbs\n");
  for (const Again what : {Again::load, Again::store}) {
    for (const int us : {10, 20, 40, 320}) {
      card.measure_kept(what, us, Stream::none, 0, stream_vectors);
      card.measure_kept(what, us, Stream::read, 66, stream_vectors);
      card.measure_kept(what, us, Stream::write, 66, stream_vectors);
      card.measure_kept(what, us, Stream::write, 66, in_l2);
    }
  }
  card.measure_kept(Again::nothing, 0, Stream::write, 66, in_l2);
  card.measure_kept(Again::nothing, 0, Stream::write, 66, in_l2, Stream::read, 66);
}

}  // namespace

int main(int count, char** arguments) {
  Card card;
  if (count == 2 && std::string(arguments[1]) == "kept") {
    measure_kept(card);
    return 0;
  }
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
