// Aggressors that load one resource each. Outputs are exact, so that disturbance never hides an
// error.
#include "past_l1.cuh"

// Each thread reads every threads-th 16-byte word, `rounds` times over the buffer, and writes the
// sum.
DEMARC_KERNEL stress_read(const uint4* buffer, unsigned* sums, unsigned words, unsigned rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = gridDim.x * blockDim.x;
  unsigned sum = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned i = thread; i < words; i += threads) {
      const uint4 value = load_past_l1(buffer + i);
      sum += value.x ^ value.y ^ value.z ^ value.w;
    }
  }
  sums[thread] = sum;
}

// Word i ends as i + rounds - 1 in its four parts.
DEMARC_KERNEL stress_write(uint4* buffer, unsigned words, unsigned rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = gridDim.x * blockDim.x;
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned i = thread; i < words; i += threads) store_past_l1(buffer + i, i + round);
  }
}

// One dependent load after the other: chain c starts at word c*stride and follows `steps` links.
DEMARC_KERNEL stress_chase(const unsigned* links, unsigned* ends, unsigned chains, unsigned stride,
                           unsigned steps) {
  const unsigned chain = blockIdx.x * blockDim.x + threadIdx.x;
  if (chain >= chains) return;
  unsigned at = chain * stride;
  for (unsigned step = 0; step < steps; ++step) {
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(links + at));
  }
  ends[chain] = at;
}

// Each thread adds to counters that lie `counters`/7 apart in turn.
DEMARC_KERNEL stress_atomics(unsigned* counts, unsigned counters, unsigned rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned round = 0; round < rounds; ++round) {
    atomicAdd(counts + (thread + round * (counters / 7 + 1)) % counters, round + 1);
  }
}

// Each thread looks at one word `polls` times, past all caches of the card, and writes the sum.
DEMARC_KERNEL stress_poll(const unsigned* word, unsigned* seen, unsigned polls) {
  unsigned sum = 0;
  for (unsigned poll = 0; poll < polls; ++poll) {
    unsigned value;
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    sum += value;
  }
  seen[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Four independent chains of fused multiply-adds; no memory but one store.
DEMARC_KERNEL stress_arithmetic(float* results, unsigned rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  float a = 0.001f * static_cast<float>(thread % 1024);
  float b = a + 1.0f;
  float c = a + 2.0f;
  float d = a + 3.0f;
  for (unsigned round = 0; round < rounds; ++round) {
    a = __builtin_fmaf(a, 0.75f, 0.25f);
    b = __builtin_fmaf(b, 0.75f, 0.25f);
    c = __builtin_fmaf(c, 0.75f, 0.25f);
    d = __builtin_fmaf(d, 0.75f, 0.25f);
  }
  results[thread] = (a + b) + (c + d);
}
