// Thrust's algorithms, as called from device code and as kernels of its own.
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

__global__ void sequential(int* data, int count, int* place, float* squares) {
  thrust::sort(thrust::seq, data, data + count);
  *place = static_cast<int>(thrust::lower_bound(thrust::seq, data, data + count, 42) - data);
  thrust::transform(thrust::seq, data, data + count, squares,
                    [](int x) { return static_cast<float>(x) * x; });
  *squares = thrust::reduce(thrust::seq, squares, squares + count, 0.0f);
}

struct Collatz {
  unsigned* steps;
  __device__ void operator()(unsigned i) const {
    unsigned n = i + 1;
    unsigned count = 0;
    while (n != 1) {
      n = n % 2 == 0 ? n / 2 : 3 * n + 1;
      ++count;
    }
    steps[i] = count;
  }
};

void parallel(unsigned* steps, unsigned count, float* values) {
  thrust::for_each(thrust::device, thrust::counting_iterator<unsigned>(0),
                   thrust::counting_iterator<unsigned>(count), Collatz{steps});
  thrust::inclusive_scan(thrust::device, values, values + count, values);
}
