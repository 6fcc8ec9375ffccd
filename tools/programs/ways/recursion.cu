// A module whose kernels reach recursion, a function pointer from memory and a virtual function,
// beside a plain one. "recursion" launches the plain one alone; "recursion
// recursive|pointer|virtual" that one too. nvcc -arch=sm_90 -O1 -o recursion recursion.cu
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
__device__ __noinline__ unsigned ways_of(unsigned n) {
  return n < 2 ? 1 : ways_of(n - 1) + ways_of(n - 2);
}
__global__ void plain(unsigned* to) {
  to[threadIdx.x] = threadIdx.x * 3;
}
__global__ void recursive(unsigned* to) {
  to[threadIdx.x] = ways_of(threadIdx.x & 7) * 3;
}
using Function = unsigned (*)(unsigned);
__device__ __noinline__ unsigned twice(unsigned n) {
  return n * 2;
}
__device__ __noinline__ unsigned thrice(unsigned n) {
  return n * 3;
}
__device__ Function chosen[2] = {twice, thrice};
__global__ void pointer(unsigned* to, int which) {
  to[threadIdx.x] = chosen[which](threadIdx.x);
}
struct Base {
  __device__ virtual unsigned of(unsigned n) = 0;
};
struct Twice : Base {
  __device__ unsigned of(unsigned n) override { return n * 2; }
};
struct Thrice : Base {
  __device__ unsigned of(unsigned n) override { return n * 3; }
};
__global__ void virtually(unsigned* to, int which) {
  Twice a;
  Thrice b;
  Base* c = which ? static_cast<Base*>(&b) : &a;
  to[threadIdx.x] = c->of(threadIdx.x);
}
int main(int argc, char** argv) {
  unsigned *at = nullptr, host[32] = {};
  cudaMalloc(&at, sizeof host);
  const char* what = argc > 1 ? argv[1] : "plain";
  if (!std::strcmp(what, "recursive"))
    recursive<<<1, 32>>>(at);
  else if (!std::strcmp(what, "pointer"))
    pointer<<<1, 32>>>(at, 1);
  else if (!std::strcmp(what, "virtual"))
    virtually<<<1, 32>>>(at, 1);
  else
    plain<<<1, 32>>>(at);
  const cudaError_t launched = cudaGetLastError();
  cudaMemcpy(host, at, sizeof host, cudaMemcpyDeviceToHost);
  const unsigned expected =
      !std::strcmp(what, "recursive") ? 2 * 3 : 6;  // of thread 2: ways_of(2) is 2
  std::printf("%s: %s, %u: %s\n", what, cudaGetErrorString(launched), host[2],
              launched == 0 && host[2] == expected ? "right" : "WRONG");
  return launched == 0 && host[2] == expected ? 0 : 1;
}
