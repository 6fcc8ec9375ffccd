// Ways in which a program gets host memory that its kernels reach, and what the driver says
// to each. Under `demarc exec --no-host-memory` all of them are refused; kernels, copies and memory
// of the card work as before. Build: nvcc -o host_memory examples/host_memory.cu      with a
// managed variable: -DMANAGED Run:   demarc exec --sms 50% --no-host-memory -- ./host_memory
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#ifdef MANAGED
__managed__ int total;
__global__ void touch_managed() {
  total = 1;
}
#endif

__global__ void add(int* sum) {
  atomicAdd(sum, 1);
}

static void say(const char* way, cudaError_t code) {
  std::printf("%-30s %s\n", way, cudaGetErrorString(code));
  cudaGetLastError();
}

int main() {
#ifdef MANAGED
  touch_managed<<<1, 1>>>();
  say("__managed__ variable", cudaDeviceSynchronize());
#endif
  int* sum = nullptr;
  int value = 0;
  say("cudaMalloc", cudaMalloc(&sum, sizeof *sum));
  say("cudaMemset", cudaMemset(sum, 0, sizeof *sum));
  add<<<1, 32>>>(sum);
  say("kernel", cudaDeviceSynchronize());
  say("cudaMemcpy", cudaMemcpy(&value, sum, sizeof value, cudaMemcpyDeviceToHost));
  void* memory = nullptr;
  say("cudaMallocAsync", cudaMallocAsync(&memory, 4096, nullptr));
  say("cudaMallocHost", cudaMallocHost(&memory, 4096));
  say("cudaHostAlloc", cudaHostAlloc(&memory, 4096, cudaHostAllocMapped));
  void* ordinary = std::aligned_alloc(4096, 4096);
  say("cudaHostRegister", cudaHostRegister(ordinary, 4096, cudaHostRegisterMapped));
  say("cudaMallocManaged", cudaMallocManaged(&memory, 4096));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeHost;
  cudaMemPool_t pool = nullptr;
  say("cudaMemPoolCreate on the host", cudaMemPoolCreate(&pool, &properties));
  return value == 32 ? 0 : 1;
}
