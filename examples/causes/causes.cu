// Victims that do one thing each, and neighbours that press on one thing: what disturbs a launch,
// by cause (docs/measurements/launches.md). causes.ptx is this file, by
//   nvcc -arch=compute_90 -ptx causes.cu -o causes.ptx

extern "C" __global__ void nothing(unsigned* out) {
  if (threadIdx.x > 5000) out[0] = 1;
}

// A word each, and a fence behind it that orders it for the whole card.
extern "C" __global__ void fence_gpu(unsigned* out, unsigned rounds) {
  volatile unsigned* own = out + blockIdx.x * 32 + threadIdx.x;
  for (unsigned i = 0; i < rounds; ++i) {
    *own = i;
    __threadfence();
  }
}

// The same with a fence for the whole system.
extern "C" __global__ void fence_system(unsigned* out, unsigned rounds) {
  volatile unsigned* own = out + blockIdx.x * 32 + threadIdx.x;
  for (unsigned i = 0; i < rounds; ++i) {
    *own = i;
    __threadfence_system();
  }
}

// A word each goes to the L2 and back: no fence.
extern "C" __global__ void round_trip(unsigned* out, unsigned rounds) {
  unsigned* own = out + blockIdx.x * 32 + threadIdx.x;
  unsigned sum = 0;
  for (unsigned i = 0; i < rounds; ++i) sum = atomicAdd(own, sum + 1);
  *own = sum;
}

// All threads store to ten bytes, each in a page of its own.
extern "C" __global__ void hot_bytes(unsigned char* data, unsigned rounds) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < rounds; ++i) {
    data[static_cast<unsigned long long>((thread + i) % 10) << 21] = static_cast<unsigned char>(i);
  }
}

// A thousand words of local memory per thread.
extern "C" __global__ void local_array(unsigned* out, unsigned rounds) {
  unsigned words[1024];
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < 1024; ++i) words[i] = i ^ thread;
  unsigned at = thread;
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned i = 0; i < 1024; ++i) {
      const unsigned j = (i * 7 + at) & 1023;
      words[j] = words[j] * 3 + i;
      at ^= words[j] & 1;
    }
  }
  unsigned sum = 0;
  for (unsigned i = 0; i < 1024; ++i) sum += words[i];
  out[thread] = sum;
}
