// Kernels that time one path of the memory system each, alone on the card (demarc calibrate). What
// they compute is exact.
#include "past_l1.cuh"

static __device__ __forceinline__ unsigned load_past_l1(const unsigned* address) {
  unsigned value;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(address));
  return value;
}

static __device__ __forceinline__ void store_past_l1(unsigned* address, unsigned value) {
  asm volatile("st.global.cg.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

static __device__ __forceinline__ unsigned sum_of(unsigned value) {
  return value;
}

static __device__ __forceinline__ unsigned sum_of(const uint4& value) {
  return value.x + value.y + value.z + value.w;
}

// Each thread reads four elements at a time, `steps` times; those of all threads lie one behind the
// other from element `first` on and wrap at `elements`, a power of two. It writes the sum.
template <class Element>
static __device__ __forceinline__ void read_elements(const Element* buffer, unsigned* sums,
                                                     unsigned first, unsigned elements,
                                                     unsigned steps) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = gridDim.x * blockDim.x;
  unsigned at = first + thread;
  unsigned sum = 0;
  for (unsigned step = 0; step < steps; ++step) {
    const Element a = load_past_l1(buffer + (at & (elements - 1)));
    const Element b = load_past_l1(buffer + ((at + threads) & (elements - 1)));
    const Element c = load_past_l1(buffer + ((at + 2 * threads) & (elements - 1)));
    const Element d = load_past_l1(buffer + ((at + 3 * threads) & (elements - 1)));
    sum += sum_of(a) + sum_of(b) + sum_of(c) + sum_of(d);
    at += 4 * threads;
  }
  sums[thread] = sum;
}

// The same places in the same order; element i becomes i + 1.
template <class Element>
static __device__ __forceinline__ void write_elements(Element* buffer, unsigned first,
                                                      unsigned elements, unsigned steps) {
  const unsigned threads = gridDim.x * blockDim.x;
  unsigned at = first + blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned step = 0; step < 4 * steps; ++step) {
    const unsigned place = at & (elements - 1);
    store_past_l1(buffer + place, place + 1);
    at += threads;
  }
}

DEMARC_KERNEL gauge_read4(const unsigned* buffer, unsigned* sums, unsigned first, unsigned elements,
                          unsigned steps) {
  read_elements(buffer, sums, first, elements, steps);
}

DEMARC_KERNEL gauge_read16(const uint4* buffer, unsigned* sums, unsigned first, unsigned elements,
                           unsigned steps) {
  read_elements(buffer, sums, first, elements, steps);
}

DEMARC_KERNEL gauge_write4(unsigned* buffer, unsigned first, unsigned elements, unsigned steps) {
  write_elements(buffer, first, elements, steps);
}

DEMARC_KERNEL gauge_write16(uint4* buffer, unsigned first, unsigned elements, unsigned steps) {
  write_elements(buffer, first, elements, steps);
}

// One dependent load after the other, eight in a turn of the loop and a chain a block: chain c of
// all that a launch follows starts at element c of the cycle, and this kernel has those from
// `first` on.
DEMARC_KERNEL gauge_chase(const unsigned* links, unsigned* ends, unsigned first, unsigned elements,
                          unsigned stride, unsigned turns) {
  if (threadIdx.x != 0) return;
  unsigned at = (first + blockIdx.x) % elements * stride;
#pragma unroll 1
  for (unsigned turn = 0; turn < turns; ++turn) {
    unsigned next = at;
#pragma unroll
    for (unsigned load = 0; load < 8; ++load) {
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(next) : "l"(links + next));
    }
    // Who simulates the PTX as it stands waits here for the last of them.
    asm volatile("mov.u32 %0, %1;" : "=r"(at) : "r"(next));
  }
  ends[blockIdx.x] = at;
}

// Two buffers added into a third, from element `first` on, an element a thread.
DEMARC_KERNEL gauge_add(const unsigned* a, const unsigned* b, unsigned* c, unsigned first) {
  const unsigned at = first + blockIdx.x * blockDim.x + threadIdx.x;
  c[at] = a[at] + b[at];
}

// Blocks that do next to nothing: the first thread of each leaves the block's number plus one.
DEMARC_KERNEL gauge_mark(unsigned* marks) {
  if (threadIdx.x == 0) marks[blockIdx.x] = blockIdx.x + 1;
}
