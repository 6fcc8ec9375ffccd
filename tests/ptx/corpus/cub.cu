// Block, warp and device algorithms of CUB.
#include <cub/cub.cuh>

template <int threads, int items>
__global__ void sort_and_scan(const unsigned* in, unsigned* out) {
  using Load = cub::BlockLoad<unsigned, threads, items, cub::BLOCK_LOAD_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<unsigned, threads, items>;
  using Scan = cub::BlockScan<unsigned, threads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Sort::TempStorage sort;
    typename Scan::TempStorage scan;
  } storage;
  unsigned keys[items];
  Load(storage.load).Load(in + blockIdx.x * threads * items, keys);
  __syncthreads();
  Sort(storage.sort).Sort(keys);
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(keys, keys);
  for (int i = 0; i < items; ++i) {
    out[(blockIdx.x * threads + threadIdx.x) * items + i] = keys[i];
  }
}
template __global__ void sort_and_scan<128, 4>(const unsigned*, unsigned*);

__global__ void reduce_and_histogram(const float* in, float* sum, unsigned* bins) {
  using Reduce = cub::BlockReduce<float, 256>;
  using Histogram = cub::BlockHistogram<unsigned char, 256, 1, 64>;
  __shared__ typename Reduce::TempStorage reduce;
  __shared__ typename Histogram::TempStorage histogram;
  __shared__ unsigned counts[64];
  const float value = in[blockIdx.x * 256 + threadIdx.x];
  const float total = Reduce(reduce).Reduce(value, [](float a, float b) { return a < b ? b : a; });
  unsigned char sample[1] = {static_cast<unsigned char>(static_cast<int>(value) & 63)};
  Histogram(histogram).Histogram(sample, counts);
  __syncthreads();
  if (threadIdx.x == 0) sum[blockIdx.x] = total;
  if (threadIdx.x < 64) atomicAdd(bins + threadIdx.x, counts[threadIdx.x]);
}

__global__ void warp_work(const int* in, int* out) {
  using Reduce = cub::WarpReduce<int>;
  using Sort = cub::WarpMergeSort<int, 2>;
  __shared__ typename Reduce::TempStorage reduce[4];
  __shared__ typename Sort::TempStorage sort[4];
  const int warp = threadIdx.x / 32;
  int items[2] = {in[threadIdx.x], in[threadIdx.x + 128]};
  Sort(sort[warp]).Sort(items, [](int a, int b) { return a < b; });
  const int sum = Reduce(reduce[warp]).Sum(items[0] ^ items[1]);
  out[threadIdx.x] = sum + items[1];
}
