// A neighbour that presses on a variable of its module. It has a module of its own, since under
// colours all variables of a module get a place, whichever kernel is launched. module_array.ptx is
// this file, by
//   nvcc -arch=compute_90 -ptx module_array.cu -o module_array.ptx

// 256 MiB of the module itself, read and written.
__device__ uint4 module_words[16 * 1024 * 1024];
extern "C" __global__ void module_array(unsigned* out, unsigned rounds, unsigned words) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = gridDim.x * blockDim.x;
  for (unsigned round = 0; round < rounds; ++round) {
    for (unsigned i = thread; i < words; i += threads) {
      uint4 value = module_words[i];
      value.x += round;
      module_words[i] = value;
    }
  }
  if (thread == 0) out[0] = module_words[5].x;
}
