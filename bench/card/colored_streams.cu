// Streams over coloured memory: by plain code that is given the address of every run, and through
// the accessor that computes each address. Compiled to PTX at build time.
// demarc: needs nvcc
#include "../../include/demarc/card/colored.cuh"

namespace {

// A 16-byte load past the L1 that the compiler may not drop or merge.
__device__ __forceinline__ uint4 load_16(const uint4* address) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

__device__ __forceinline__ unsigned fold(uint4 v) {
  return v.x ^ v.y ^ v.z ^ v.w;
}

__device__ __forceinline__ uint4 changed(uint4 v) {
  return make_uint4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
}

// Four vectors at a time, as far as there are; `at(i)` is the address of the i-th vector.
template <class Address>
__device__ __forceinline__ unsigned stream_once(unsigned long long vectors, unsigned writes,
                                                Address at) {
  const unsigned long long step = 1ULL * gridDim.x * blockDim.x;
  unsigned sum = 0;
  for (unsigned long long i = 1ULL * blockIdx.x * blockDim.x + threadIdx.x; i < vectors;
       i += 4 * step) {
    uint4* address[4];
    uint4 value[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      address[u] = nullptr;
      value[u] = make_uint4(0, 0, 0, 0);
      if (i + u * step < vectors) {
        address[u] = at(i + u * step);
        value[u] = load_16(address[u]);
      }
    }
    if (writes != 0) {
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (address[u] != nullptr) *address[u] = changed(value[u]);
      }
    }
#pragma unroll
    for (int u = 0; u < 4; ++u) sum += fold(value[u]);
  }
  return sum;
}

template <class Address>
__device__ __forceinline__ unsigned stream(unsigned long long vectors, unsigned writes,
                                           unsigned rounds, Address at) {
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned round = 0; round < rounds; ++round) sum += stream_once(vectors, writes, at);
  return sum;
}

}  // namespace

// Contiguous memory.
extern "C" __global__ void __launch_bounds__(1024)
    bench_plain(unsigned long long base, unsigned long long vectors, unsigned writes,
                unsigned rounds, unsigned* sink) {
  auto* data = reinterpret_cast<uint4*>(base);
  const unsigned sum =
      stream(vectors, writes, rounds, [data](unsigned long long i) { return data + i; });
  if (sum == 0x12345678U) *sink = sum;
}

// Runs of 1 << run_shift vectors, whose addresses are in a list.
extern "C" __global__ void __launch_bounds__(1024)
    bench_runs(const unsigned long long* runs, unsigned run_shift, unsigned long long vectors,
               unsigned writes, unsigned rounds, unsigned* sink) {
  const unsigned long long inside = (1ULL << run_shift) - 1;
  const unsigned sum = stream(vectors, writes, rounds, [=](unsigned long long i) {
    return reinterpret_cast<uint4*>(__ldg(runs + (i >> run_shift))) + (i & inside);
  });
  if (sum == 0x12345678U) *sink = sum;
}

extern "C" __global__ void __launch_bounds__(1024)
    bench_span1(demarc::colored_span<uint4, 1> data, unsigned writes, unsigned rounds,
                unsigned* sink) {
  const unsigned sum =
      stream(data.size(), writes, rounds, [&data](unsigned long long i) { return &data[i]; });
  if (sum == 0x12345678U) *sink = sum;
}

extern "C" __global__ void __launch_bounds__(1024)
    bench_span2(demarc::colored_span<uint4, 2> data, unsigned writes, unsigned rounds,
                unsigned* sink) {
  const unsigned sum =
      stream(data.size(), writes, rounds, [&data](unsigned long long i) { return &data[i]; });
  if (sum == 0x12345678U) *sink = sum;
}

extern "C" __global__ void __launch_bounds__(1024)
    bench_span_remainders(demarc::colored_span<uint4, demarc::remainders> data, unsigned writes,
                          unsigned rounds, unsigned* sink) {
  const unsigned sum =
      stream(data.size(), writes, rounds, [&data](unsigned long long i) { return &data[i]; });
  if (sum == 0x12345678U) *sink = sum;
}
