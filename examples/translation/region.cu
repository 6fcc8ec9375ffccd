// Streams, strides, random accesses and chains of dependent loads, each block in a region of its
// own, so that all a block touches lies on one GPU: its own, or with --placement far another.
// docs/measurements/translation.md compares their times on two cards with simulated ones. PTX: nvcc
// -ptx -arch=sm_90 -o region.ptx region.cu

extern "C" __global__ void region_read(const uint4* data, unsigned* sums, unsigned elements) {
  const uint4* region = data + static_cast<unsigned long long>(blockIdx.x) * elements;
  unsigned sum = 0;
  for (unsigned at = threadIdx.x; at < elements; at += 4 * blockDim.x) {
    const uint4 a = region[at];
    const uint4 b = region[at + blockDim.x];
    const uint4 c = region[at + 2 * blockDim.x];
    const uint4 d = region[at + 3 * blockDim.x];
    sum += a.x + b.y + c.z + d.w;
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void region_write(uint4* data, unsigned elements) {
  uint4* region = data + static_cast<unsigned long long>(blockIdx.x) * elements;
  for (unsigned at = threadIdx.x; at < elements; at += blockDim.x) {
    region[at] = make_uint4(at, at + 1, at + 2, at + 3);
  }
}

extern "C" __global__ void region_copy(const uint4* from, uint4* to, unsigned elements) {
  const unsigned long long first = static_cast<unsigned long long>(blockIdx.x) * elements;
  for (unsigned at = threadIdx.x; at < elements; at += 2 * blockDim.x) {
    const uint4 a = from[first + at];
    const uint4 b = from[first + at + blockDim.x];
    to[first + at] = a;
    to[first + at + blockDim.x] = b;
  }
}

// One word of every 256 bytes.
extern "C" __global__ void region_stride(const unsigned* data, unsigned* sums, unsigned words) {
  const unsigned* region = data + static_cast<unsigned long long>(blockIdx.x) * words;
  constexpr unsigned stride = 64;
  unsigned sum = 0;
  for (unsigned at = threadIdx.x * stride; at < words; at += 4 * stride * blockDim.x) {
    const unsigned a = region[at];
    const unsigned b = region[at + stride * blockDim.x];
    const unsigned c = region[at + 2 * stride * blockDim.x];
    const unsigned d = region[at + 3 * stride * blockDim.x];
    sum += a + b + c + d;
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static __device__ unsigned next_random(unsigned state) {
  return state * 1664525u + 1013904223u;
}

// `words` is a power of two.
extern "C" __global__ void region_random(const unsigned* data, unsigned* sums, unsigned words,
                                         unsigned turns) {
  const unsigned* region = data + static_cast<unsigned long long>(blockIdx.x) * words;
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = thread * 2654435761u;
  unsigned sum = 0;
  for (unsigned turn = 0; turn < turns; ++turn) {
    unsigned at[4];
    for (unsigned& one : at) {
      state = next_random(state);
      one = (state >> 8) & (words - 1);
    }
    sum += region[at[0]] + region[at[1]] + region[at[2]] + region[at[3]];
  }
  sums[thread] = sum;
}

// One thread, one load after the other; what is loaded is zero.
extern "C" __global__ void region_chase(const unsigned* data, unsigned* sums, unsigned words,
                                        unsigned turns) {
  const unsigned* region = data + static_cast<unsigned long long>(blockIdx.x) * words;
  unsigned state = blockIdx.x + 1;
  for (unsigned turn = 0; turn < turns; ++turn) {
    state = next_random(state);
    state += region[(state >> 8) & (words - 1)];
  }
  sums[blockIdx.x] = state;
}
