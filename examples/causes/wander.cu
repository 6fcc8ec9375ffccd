// Loads at random places of a large buffer, for what the TLBs and the page walkers, which all parts
// of a card share, do to a victim: how far a neighbour wanders decides which of their levels it
// fills. wander.ptx is this file, by
//   nvcc -arch=compute_80 -ptx wander.cu -o wander.ptx
__device__ unsigned long long next_place(unsigned long long state) {
  return state * 6364136223846793005ull + 1442695040888963407ull;
}

// One load at a time and thread; the place of each depends on what the load before gave (zero).
extern "C" __global__ void wander_dependent(const unsigned* data, unsigned* out,
                                            unsigned long long words, unsigned loads) {
  unsigned long long state = next_place(blockIdx.x * blockDim.x + threadIdx.x + 1);
  unsigned sum = 0;
  for (unsigned i = 0; i < loads; ++i) {
    state = next_place(state + sum);
    sum += data[__umul64hi(state, words) & ~7ull];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Eight loads in flight for each thread.
extern "C" __global__ void wander_streams(const unsigned* data, unsigned* out,
                                          unsigned long long words, unsigned loads) {
  unsigned long long state = next_place(blockIdx.x * blockDim.x + threadIdx.x + 1);
  unsigned sum = 0;
  for (unsigned i = 0; i < loads; ++i) {
#pragma unroll
    for (unsigned j = 0; j < 8; ++j) {
      state = next_place(state);
      sum += data[__umul64hi(state, words) & ~7ull];
    }
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
