// Puts the thread that starts a program into a green context of half of the card's SMs, before the
// program does anything: what the program could do itself. GREEN_HALF, 0 or 1, says which. The
// halves have 64 SMs each on an H200; four of its 132 are left out, since groups of SMs have 8.
//   nvcc -O2 -shared -cudart none -Xcompiler -fPIC -o green_half.so green_half.cpp -lcuda
//   GREEN_HALF=0 LD_PRELOAD=./green_half.so ./steps
// It says on stderr on which SMs blocks ran, by the numbers that they have in the green context,
// and ends the program with 2 if they are not as many as the half has. A program leaves the half
// when it makes another context current. cudaSetDevice does; it is called here first, where the
// runtime is a shared library. green_half_left() says whether that happened.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr unsigned max_sms = 1024;
CUcontext green = nullptr;

// Notes the SM of each block. As text: what nvcc compiles is registered after constructors ran.
constexpr const char* mark = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry mark(.param .u64 seen) {
  .reg .pred %more;
  .reg .b32 %mine, %begin, %now, %one;
  .reg .b64 %seen, %at;
  ld.param.u64 %seen, [seen];
  mov.u32 %mine, %smid;
  mul.wide.u32 %at, %mine, 4;
  add.u64 %at, %at, %seen;
  mov.u32 %one, 1;
  st.global.u32 [%at], %one;
  mov.u32 %begin, %clock;
again:
  mov.u32 %now, %clock;
  sub.u32 %now, %now, %begin;
  setp.lt.u32 %more, %now, 100000;
  @%more bra again;
  ret;
})";

void need(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "green_half: %s\n", what);
  std::_Exit(2);
}

[[gnu::constructor]] void enter() {
  const char* half = std::getenv("GREEN_HALF");
  if (half == nullptr) return;
  need(std::strcmp(half, "0") == 0 || std::strcmp(half, "1") == 0, "GREEN_HALF has to be 0 or 1");
  // What the program starts is not a program of the card.
  unsetenv("LD_PRELOAD");
  CUdevice device = 0;
  CUcontext primary = nullptr;
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
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  unsigned* seen = nullptr;
  need(cuModuleLoadData(&module, mark) == CUDA_SUCCESS &&
           cuModuleGetFunction(&kernel, module, "mark") == CUDA_SUCCESS &&
           cuMemAllocHost(reinterpret_cast<void**>(&seen), max_sms * sizeof *seen) == CUDA_SUCCESS,
       "the kernel that notes SMs cannot be loaded");
  std::memset(seen, 0, max_sms * sizeof *seen);
  void* arguments[] = {&seen};
  need(cuLaunchKernel(kernel, 8 * max_sms, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr) ==
               CUDA_SUCCESS &&
           cuCtxSynchronize() == CUDA_SUCCESS,
       "the kernel that notes SMs failed");
  unsigned used = 0;
  std::fprintf(stderr, "green_half %s: SMs", half);
  for (unsigned sm = 0; sm < max_sms; ++sm) {
    if (seen[sm] == 0) continue;
    std::fprintf(stderr, " %u", sm);
    ++used;
  }
  std::fprintf(stderr, "\n");
  need(used == parts[*half - '0'].sm.smCount, "blocks ran on other SMs than those of the half");
  cuMemFreeHost(seen);
  cuModuleUnload(module);
}

}  // namespace

// 1 where another context is current in this thread.
extern "C" int green_half_left() {
  CUcontext current = nullptr;
  return cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != green;
}

extern "C" int cudaSetDevice(int device) {
  using Function = int(int);
  static auto* const next = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, "cudaSetDevice"));
  need(next != nullptr, "the program has no cudaSetDevice");
  const int code = next(device);
  if (code == 0 && device == 0 && green != nullptr) cuCtxSetCurrent(green);
  return code;
}
