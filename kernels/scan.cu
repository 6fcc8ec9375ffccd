// Exclusive scan of the block sums of a larger scan: thread i takes the last result and the last
// input of the i-th stretch of 1024 words, whose sum is the stretch's total, and writes the sum of
// all totals before it.
#include "demarc_kernel.cuh"

constexpr int block_threads = 256;
constexpr int stretch = 1024;

DEMARC_KERNEL scan_exclusive_shared2(unsigned* totals, const unsigned* scanned,
                                     const unsigned* source, int count, int length) {
  __shared__ unsigned work[2 * block_threads];
  const int at = blockIdx.x * block_threads + threadIdx.x;
  unsigned value = 0;
  if (at < count) value = scanned[stretch - 1 + stretch * at] + source[stretch - 1 + stretch * at];

  // Hillis and Steele within stretches of `length` threads; the lower half of each window holds
  // zeros.
  int slot = 2 * threadIdx.x - (threadIdx.x & (length - 1));
  work[slot] = 0;
  slot += length;
  work[slot] = value;
  for (int offset = 1; offset < length; offset *= 2) {
    __syncthreads();
    const unsigned sum = work[slot] + work[slot - offset];
    __syncthreads();
    work[slot] = sum;
  }
  if (at < count) totals[at] = work[slot] - value;
}
