// Device code of `demarc probe translation` and of canaries: walks from line to line over pages,
// and accesses from many SMs at random places of them. Blocks of the probe ask for the whole shared
// memory, so each has an SM alone; a canary's block does not. See page_timer.hpp and
// canary_walk.hpp.
#include "memory_words.cuh"

namespace {

// As cuda::PageTraffic::Kind; atomics are the rest.
constexpr u32 kind_read = 0;
constexpr u32 kind_write = 1;
constexpr u32 kind_page = 2;
constexpr u32 kind_word = 3;

constexpr u32 batches_between_looks = 8;  // at the time, where a batch is short

__device__ __forceinline__ u64 cycles() {
  u64 time;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(time)::"memory");
  return time;
}

// Past the L1: the answer comes from the L2 or beyond.
__device__ __forceinline__ u64 load_pointer(u64 address) {
  u64 value;
  asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

__device__ __forceinline__ void store_vector(u64 address, u32 value) {
  asm volatile("st.global.cg.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(address), "r"(value) : "memory");
}

// Of all GPUs and the host, so that it holds across a link.
__device__ __forceinline__ u64 add_to_pointer(u64 address, u64 value) {
  u64 before;
  asm volatile("atom.global.sys.add.u64 %0, [%1], %2;"
               : "=l"(before)
               : "l"(address), "l"(value)
               : "memory");
  return before;
}

__device__ __forceinline__ u32 add_to_word(u64 address, u32 value) {
  u32 before;
  asm volatile("atom.global.sys.add.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(address), "r"(value)
               : "memory");
  return before;
}

// A permutation of the 32-bit numbers (the finaliser of MurmurHash3).
__device__ __forceinline__ u32 stirred(u32 x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bU;
  x = (x ^ (x >> 13)) * 0xc2b2ae35U;
  return x ^ (x >> 16);
}

// In [0, bound).
__device__ __forceinline__ u32 below(u32 random, u32 bound) {
  return static_cast<u32>((static_cast<u64>(random) * bound) >> 32);
}

// Cycles of `count` dependent accesses from `at` on, which moves along.
__device__ __forceinline__ u64 walk(u64& at, u32 count, u32 atomics, u64 zero) {
  const u64 begin = cycles();
  at += begin & zero;
  if (atomics != 0) {
#pragma unroll 1
    for (u32 step = 0; step < count; ++step) at = add_to_pointer(at, zero);
  } else {
#pragma unroll 1
    for (u32 step = 0; step < count; ++step) at = load_pointer(at);
  }
  // The second reading of the clock waits for the last value: no line lies at 0.
  if (at == 0) return 0;
  return cycles() - begin;
}

}  // namespace

// Makes `count` lines of 128 bytes a ring: the first 8 bytes of line lines[i], counted from base,
// become the address of line lines[i + 1].
extern "C" __global__ void demarc_page_ring(u64 base, const u32* lines, u32 count) {
  const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const u32 next = i + 1 == count ? 0 : i + 1;
  *reinterpret_cast<u64*>(base + static_cast<u64>(lines[i]) * 128) =
      base + static_cast<u64>(lines[next]) * 128;
}

// Two walks around a ring, one after the other, by one thread on SM `target`: the first block there
// takes the work (`taken` is 0 at launch). result: cycles of the first walk, of the second, and the
// address at which it ended. `zero` is 0, which the compiler does not know.
extern "C" __global__ void demarc_page_walk(u64 start, u32 count, u32 atomics, u32 target,
                                            u32* taken, u64* result, u64 zero) {
  if (threadIdx.x != 0 || own_sm() != target || atomicAdd(taken, 1U) != 0) return;
  u64 at = start;
  result[0] = walk(at, count, atomics, zero);
  result[1] = walk(at, count, atomics, zero);
  result[2] = at;
}

// The same walks on whatever SM the block comes to.
extern "C" __global__ void demarc_page_canary(u64 start, u32 count, u64* result, u64 zero) {
  if (threadIdx.x != 0) return;
  u64 at = start;
  result[0] = walk(at, count, 0, zero);
  result[1] = walk(at, count, 0, zero);
  result[2] = at;
}

// Accesses at random places of `pages` pages of 1 << page_shift bytes, for `duration_ns`. Reads and
// writes have 1 << access_shift bytes (16 to 4096), 16 of a thread; atomics and reads of a line of
// a page have 4, at whatever place, at the page's own line, or all at the first word.
// results[3 * block] (0 at launch): batches of 4 accesses of all its threads, the complement of the
// first nanosecond, the last one.
extern "C" __global__ void __launch_bounds__(1024)
    demarc_page_traffic(u64 base, u32 pages, u32 page_shift, u32 kind, u32 access_shift, u32 seed,
                        u64 duration_ns, u64* results, u32* sink) {
  const u64 begin = nanoseconds();
  const u64 bytes = static_cast<u64>(pages) << page_shift;
  const bool wide = kind == kind_read || kind == kind_write;
  const u32 group_shift = wide ? access_shift - 4 : 0;
  const u32 places = static_cast<u32>(bytes >> access_shift);
  const u64 lane_bytes = static_cast<u64>(threadIdx.x & ((1U << group_shift) - 1)) * 16;
  const u32 lines_mask = (1U << (page_shift - 7)) - 1;
  const u32 looks = wide || kind == kind_page ? batches_between_looks : 1;
  // The threads of a group draw the same numbers.
  u32 random = stirred(seed ^ stirred((blockIdx.x * blockDim.x + threadIdx.x) >> group_shift));
  u32 sum = 0;
  u64 batches = 0;
  while (nanoseconds() - begin < duration_ns) {
#pragma unroll 1
    for (u32 look = 0; look < looks; ++look) {
      u64 address[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        random = random * 1664525U + 1013904223U;
        const u32 drawn = stirred(random);
        if (kind == kind_page) {
          const u32 page = below(drawn, pages);
          address[u] = base + (static_cast<u64>(page) << page_shift) +
                       static_cast<u64>(stirred(page) & lines_mask) * 128;
        } else if (kind == kind_word) {
          address[u] = base;
        } else {
          address[u] = base + (static_cast<u64>(below(drawn, places)) << access_shift) + lane_bytes;
        }
      }
      // All four are under way before the first is looked at.
      u32 value[4] = {0, 0, 0, 0};
      if (kind == kind_read) {
        uint4 vector[4];
#pragma unroll
        for (int u = 0; u < 4; ++u) vector[u] = load_vector(address[u]);
#pragma unroll
        for (int u = 0; u < 4; ++u) value[u] = vector[u].x ^ vector[u].w;
      } else if (kind == kind_write) {
#pragma unroll
        for (int u = 0; u < 4; ++u) store_vector(address[u], random);
      } else if (kind == kind_page) {
#pragma unroll
        for (int u = 0; u < 4; ++u) value[u] = load_word(address[u]);
      } else {
#pragma unroll
        for (int u = 0; u < 4; ++u) value[u] = add_to_word(address[u], 1);
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) sum += value[u];
    }
    batches += looks;
  }
  if (sum == 0x12345678U) *sink = sum;
  asm volatile("membar.sys;" ::: "memory");
  const u64 end = nanoseconds();
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(results + 3 * blockIdx.x), "l"(batches)
               : "memory");
  asm volatile("red.global.max.u64 [%0], %1;" ::"l"(results + 3 * blockIdx.x + 1), "l"(~begin)
               : "memory");
  asm volatile("red.global.max.u64 [%0], %1;" ::"l"(results + 3 * blockIdx.x + 2), "l"(end)
               : "memory");
}
