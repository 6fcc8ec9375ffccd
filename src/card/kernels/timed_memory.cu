// Device code of the memory probe and of the audit of coloured memory: latencies seen by one SM,
// and streams that disturb each other. Launched with one block an SM (a block asks for the whole
// shared memory); a block finds out where it runs and takes the role of its SM. See
// memory_timer.hpp.
#include "memory_words.cuh"

namespace {

__device__ __forceinline__ u32 cycles() {
  u32 time;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(time)::"memory");
  return time;
}

__device__ __forceinline__ void store_zeros(u64 address) {
  asm volatile("st.global.cg.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(address), "r"(0) : "memory");
}

// Read through the L1, so that lists of chunks do not add to the traffic.
__device__ __forceinline__ u32 load_list(const u32* list, u64 index) {
  u32 value;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(list + index));
  return value;
}

}  // namespace

// Latency of an L2 hit, in cycles of 8 dependent loads, the least of `repeats`. What the memory
// holds does not matter: `never` is 0, which the compiler does not know. latencies[slot * count +
// i] for offsets[i] (in units of 128 bytes), seen from the SM whose slot_of_sm is `slot`; SMs with
// slot -1 stay idle. The `slots` measure at the same time, each at another part of the list, so
// that two rarely meet in one slice.
extern "C" __global__ void demarc_hit_latency(u64 base, const u32* offsets, u32 count,
                                              const int* slot_of_sm, u32 slots, u32 repeats,
                                              unsigned short* latencies, u32 never) {
  const int slot = slot_of_sm[own_sm()];
  if (slot < 0 || threadIdx.x != 0) return;
  unsigned short* out = latencies + static_cast<u64>(slot) * count;
  const u32 shift = static_cast<u32>(static_cast<u64>(count) * static_cast<u32>(slot) / slots);
  for (u32 step = 0; step < count; ++step) {
    const u32 i = step + shift < count ? step + shift : step + shift - count;
    u64 address = base + static_cast<u64>(offsets[i]) * 128;
    u32 zero = load_word(address) & never;
    u32 best = 65535;
    // Not unrolled: copies of the body differ by cycles in what they add to a latency.
#pragma unroll 1
    for (u32 repeat = 0; repeat < repeats; ++repeat) {
      // The first load waits for the first clock and the second clock for the last load, by data:
      // the assembler moves clock reads over loads that nothing ties to them.
      const u32 start = cycles();
      address += start & zero;
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        zero = load_word(address) & never;
        address += zero;
      }
      if (zero == 0) {
        const u32 taken = cycles() - start;
        best = taken < best ? taken : best;
      }
    }
    out[i] = static_cast<unsigned short>(best);
  }
}

// Goes `rounds` times (0: until every victim is done) over `count` chunks of 1 << chunk_shift
// bytes, at least 256; chunk i lies at base + (chunks[i] << chunk_shift).
struct DemarcStream {
  u64 base;
  const u32* chunks;
  u32 count;
  u32 chunk_shift;
  u32 rounds;
  u32 writes;   // 1: stores, 0: loads
  u32 latency;  // 1: one thread a block makes `rounds` dependent loads
  u32 workers;  // blocks that share the work
};

// roles[%smid]: 0 idle, 1 victim, 2 aggressor; ranks[%smid]: position among those of the role.
// counters[0]: blocks that have started, counters[1]: victims that are done; both 0 at launch.
// nanoseconds_of[%smid]: what a victim took. Gives up after `limit_ns`: 0 stays there then.
extern "C" __global__ void demarc_streams(DemarcStream victim, DemarcStream aggressor,
                                          const unsigned char* roles, const unsigned short* ranks,
                                          u32* counters, u64 limit_ns, u64* nanoseconds_of,
                                          u32* sink) {
  __shared__ u32 late;
  const u32 sm = own_sm();
  const u32 role = roles[sm];
  if (role == 0) return;
  volatile u32* watched = counters;
  if (threadIdx.x == 0) {
    const u64 arrived = nanoseconds();
    late = 0;
    atomicAdd(&counters[0], 1U);
    while (watched[0] < victim.workers + aggressor.workers) {
      if (nanoseconds() - arrived > limit_ns) {
        late = 1;
        break;
      }
    }
  }
  __syncthreads();
  if (late != 0) return;

  const DemarcStream stream = role == 1 ? victim : aggressor;
  const u32 rank = ranks[sm];
  const u64 begin = nanoseconds();
  u32 sum = 0;
  if (stream.latency != 0) {
    if (threadIdx.x == 0) {
      u32 value = 0;
      u32 at = static_cast<u32>(static_cast<u64>(rank) * stream.count / stream.workers);
      for (u32 round = 0; round < stream.rounds; ++round) {
        // A large odd stride visits the chunks in a scattered order.
        at = static_cast<u32>((at + 7919ULL) % stream.count);
        const u64 chunk = load_list(stream.chunks, at);
        const u32 line = (round * 5 % (1U << (stream.chunk_shift - 7))) * 128;
        value = load_word(stream.base + (chunk << stream.chunk_shift) + line + (value & 4U));
        sum += value;
      }
    }
  } else {
    const u32 vectors_shift = stream.chunk_shift - 4;
    const u32 inside = (1U << vectors_shift) - 1;
    const u64 vectors = static_cast<u64>(stream.count) << vectors_shift;
    const u64 step = static_cast<u64>(stream.workers) * blockDim.x;
    for (u32 round = 0; stream.rounds == 0 || round < stream.rounds; ++round) {
      bool stop = false;
      u32 batch = 0;
      for (u64 at = static_cast<u64>(rank) * blockDim.x + threadIdx.x; at < vectors;
           at += 4 * step) {
        u64 address[4];
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const u64 next = at + u * step;
          const u64 vector = next < vectors ? next : at;
          const u64 chunk = load_list(stream.chunks, vector >> vectors_shift);
          address[u] = stream.base + (chunk << stream.chunk_shift) + ((vector & inside) << 4);
        }
        if (stream.writes != 0) {
#pragma unroll
          for (int u = 0; u < 4; ++u) store_zeros(address[u]);
        } else {
          uint4 value[4];
#pragma unroll
          for (int u = 0; u < 4; ++u) value[u] = load_vector(address[u]);
#pragma unroll
          for (int u = 0; u < 4; ++u) sum += value[u].x ^ value[u].w;
        }
        if (stream.rounds == 0 && (++batch & 7U) == 0 &&
            (watched[1] >= victim.workers || nanoseconds() - begin > limit_ns)) {
          stop = true;
          break;
        }
      }
      if (stop || (stream.rounds == 0 &&
                   (watched[1] >= victim.workers || nanoseconds() - begin > limit_ns)))
        break;
    }
  }
  if (sum == 0x12345678U) *sink = sum;
  __syncthreads();
  if (role == 1 && threadIdx.x == 0) {
    nanoseconds_of[sm] = nanoseconds() - begin;
    atomicAdd(&counters[1], 1U);
  }
}
