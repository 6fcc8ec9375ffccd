// Two processes of a tenant use one copy of their weights, by CUDA IPC. Works the same without
// Demarc.
//   nvcc -std=c++17 -arch=sm_90 -o shared_weights shared_weights.cu
//   demarc exec --tenant a -- ./shared_weights load weights.handle &
//   demarc exec --tenant a -- ./shared_weights use weights.handle
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

constexpr size_t count = size_t(64) << 20;

__global__ void set(float* weights, float value) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
       i += size_t(gridDim.x) * blockDim.x) {
    weights[i] = value;
  }
}

void must(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

void wait_for(const std::string& file) {
  while (access(file.c_str(), F_OK) != 0) usleep(10000);
}

float last_of(const float* weights) {
  float value = 0;
  must(cudaMemcpy(&value, weights + count - 1, sizeof value, cudaMemcpyDeviceToHost), "read");
  return value;
}

void load(const std::string& file) {
  float* weights = nullptr;
  cudaIpcMemHandle_t handle;
  must(cudaMalloc(&weights, count * sizeof *weights), "allocate");
  set<<<264, 256>>>(weights, 1);
  must(cudaDeviceSynchronize(), "load");
  must(cudaIpcGetMemHandle(&handle, weights), "share");
  std::ofstream(file + ".new").write(handle.reserved, sizeof handle.reserved);
  rename((file + ".new").c_str(), file.c_str());
  wait_for(file + ".done");  // it must not be freed while the other process uses it
  printf("load: the other process has set the weights to %g\n", last_of(weights));
  must(cudaFree(weights), "free");
  unlink(file.c_str());
  unlink((file + ".done").c_str());
}

void use(const std::string& file) {
  float* weights = nullptr;
  cudaIpcMemHandle_t handle;
  wait_for(file);
  std::ifstream(file).read(handle.reserved, sizeof handle.reserved);
  must(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&weights), handle,
                            cudaIpcMemLazyEnablePeerAccess),
       "open");
  printf("use: the weights are %g, and this process has no copy\n", last_of(weights));
  set<<<264, 256>>>(weights, 2);
  must(cudaDeviceSynchronize(), "change");
  must(cudaIpcCloseMemHandle(weights), "close");
  std::ofstream(file + ".done");
}

int main(int arguments, char** argument) {
  if (arguments == 3 && strcmp(argument[1], "load") == 0) return load(argument[2]), 0;
  if (arguments == 3 && strcmp(argument[1], "use") == 0) return use(argument[2]), 0;
  fprintf(stderr, "usage: shared_weights load|use FILE\n");
  return 1;
}
