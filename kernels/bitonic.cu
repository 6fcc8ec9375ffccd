// Bitonic sorting network, ascending: stretches of 1024 in shared memory, wider merges step by
// step.
#include "demarc_kernel.cuh"

constexpr int stretch = 1024;
constexpr int block_threads = stretch / 2;

static __device__ __forceinline__ void order(unsigned& a, unsigned& b, bool ascending) {
  if ((a > b) == ascending) {
    const unsigned old = a;
    a = b;
    b = old;
  }
}

// Comparators of the widths `from`, from/2 … 1 within one stretch.
static __device__ __forceinline__ void merge(unsigned* work, int from, bool ascending) {
  for (int stride = from; stride > 0; stride /= 2) {
    __syncthreads();
    const int low = threadIdx.x & (stride - 1);
    const int first = 2 * (threadIdx.x - low) + low;
    order(work[first], work[first + stride], ascending);
  }
}

// Stretches come out ascending and descending in turn.
DEMARC_KERNEL bitonic_sort_shared(unsigned* keys) {
  __shared__ unsigned work[stretch];
  unsigned* at = keys + blockIdx.x * stretch + threadIdx.x;
  work[threadIdx.x] = at[0];
  work[threadIdx.x + block_threads] = at[block_threads];
  for (int size = 2; size < stretch; size *= 2)
    merge(work, size / 2, (threadIdx.x & (size / 2)) == 0);
  merge(work, stretch / 2, (blockIdx.x & 1) == 0);
  __syncthreads();
  at[0] = work[threadIdx.x];
  at[block_threads] = work[threadIdx.x + block_threads];
}

// One comparator width of a merge of `size` keys.
DEMARC_KERNEL bitonic_merge_global(unsigned* keys, unsigned size, unsigned stride, unsigned count) {
  const unsigned comparator = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned low = comparator & (stride - 1);
  const unsigned first = 2 * (comparator - low) + low;
  const bool ascending = size == count || (first & size) == 0;
  unsigned a = keys[first];
  unsigned b = keys[first + stride];
  order(a, b, ascending);
  keys[first] = a;
  keys[first + stride] = b;
}

// The widths below 1024 of a merge of `size` keys.
DEMARC_KERNEL bitonic_merge_shared(unsigned* keys, unsigned size, unsigned count) {
  __shared__ unsigned work[stretch];
  const unsigned begin = blockIdx.x * stretch;
  unsigned* at = keys + begin + threadIdx.x;
  work[threadIdx.x] = at[0];
  work[threadIdx.x + block_threads] = at[block_threads];
  merge(work, stretch / 2, size == count || (begin & size) == 0);
  __syncthreads();
  at[0] = work[threadIdx.x];
  at[block_threads] = work[threadIdx.x + block_threads];
}
