// Puts the thread that starts a program into a green context of half of the card's SMs, before the
// program does anything: what the program could do itself. HALF is 0 or 1. The halves have 64 SMs
// each on an H200; four of its 132 are left out, since groups of SMs have 8.
//   nvcc -arch=sm_90 -O3 -shared -Xcompiler -fPIC -o green_half.so green_half.cu -lcuda
//   GREEN_HALF=0 LD_PRELOAD=./green_half.so ./steps
// It says on stderr on which SMs blocks ran, and ends the program with 2 if that cannot be.
// A program leaves the half when it makes another context current, as cudaSetDevice does.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr unsigned most_sms = 1024;

__global__ void mark(unsigned* seen) {
  unsigned sm = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  seen[sm] = 1;
  const long long end = clock64() + 100000;
  while (clock64() < end) continue;
}

void need(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "green_half: %s\n", what);
  std::_Exit(2);
}

[[gnu::constructor]] void enter() {
  const char* half = std::getenv("GREEN_HALF");
  if (half == nullptr) return;
  need(std::strcmp(half, "0") == 0 || std::strcmp(half, "1") == 0, "GREEN_HALF has to be 0 or 1");
  // What the program starts is no program of the card.
  unsetenv("LD_PRELOAD");
  CUdevice device = 0;
  CUcontext primary = nullptr, green = nullptr;
  need(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS, "there is no card");
  need(cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS, "no context");
  CUdevResource all, parts[2], rest;
  unsigned count = 2;
  need(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS, "no SMs");
  const unsigned sms = all.sm.smCount / 2 / 8 * 8;
  need(
      cuDevSmResourceSplitByCount(parts, &count, &all, &rest, 0, sms) == CUDA_SUCCESS && count == 2,
      "the SMs cannot be split into two halves");
  CUdevResourceDesc described;
  CUgreenCtx context;
  need(cuDevResourceGenerateDesc(&described, &parts[*half - '0'], 1) == CUDA_SUCCESS &&
           cuGreenCtxCreate(&context, described, device, CU_GREEN_CTX_DEFAULT_STREAM) ==
               CUDA_SUCCESS &&
           cuCtxFromGreenCtx(&green, context) == CUDA_SUCCESS &&
           cuCtxSetCurrent(green) == CUDA_SUCCESS,
       "no green context");
  unsigned* seen = nullptr;
  need(cudaMallocHost(&seen, most_sms * sizeof *seen) == cudaSuccess, "no memory of the host");
  std::memset(seen, 0, most_sms * sizeof *seen);
  mark<<<8 * most_sms, 32>>>(seen);
  need(cudaDeviceSynchronize() == cudaSuccess, "a kernel failed");
  unsigned used = 0;
  std::fprintf(stderr, "green_half %s: SMs", half);
  for (unsigned sm = 0; sm < most_sms; ++sm) {
    if (seen[sm] == 0) continue;
    std::fprintf(stderr, " %u", sm);
    ++used;
  }
  std::fprintf(stderr, "\n");
  need(used == parts[*half - '0'].sm.smCount, "blocks ran on other SMs than those of the half");
  cudaFreeHost(seen);
}

}  // namespace
