// Streams through memory, for watch-canaries.sh. `streams read` reads 256 MiB in 10 000 launches,
// four times, and prints the mean time of a launch. `streams write` writes 512 MiB again and again
// until it is killed.
//
//   g++ -O2 -std=c++20 -I/usr/local/cuda/include streams.cpp -o streams -lcuda
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr const char* kernels = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry stream(.param .u64 buffer, .param .u64 words, .param .u32 writes)
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [buffer];
  ld.param.u64 %rd2, [words];
  ld.param.u32 %r1, [writes];
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r2, %r3, %r4;
  cvt.u64.u32 %rd3, %r2;
  mov.u32 %r4, %nctaid.x;
  mul.lo.u32 %r3, %r3, %r4;
  cvt.u64.u32 %rd4, %r3;
  mov.u32 %r9, 0;
next:
  setp.ge.u64 %p2, %rd3, %rd2;
  @%p2 bra done;
  shl.b64 %rd5, %rd3, 4;
  add.u64 %rd5, %rd1, %rd5;
  @%p1 st.global.v4.u32 [%rd5], {%r2, %r2, %r2, %r2};
  @!%p1 ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd5];
  @!%p1 xor.b32 %r9, %r9, %r5;
  add.u64 %rd3, %rd3, %rd4;
  bra next;
done:
  setp.ne.u32 %p3, %r9, 305419896;
  @%p3 bra end;
  st.global.u32 [%rd1], %r9;
end:
  ret;
})";

void need(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* why = "unknown error";
  cuGetErrorString(result, &why);
  std::fprintf(stderr, "streams: %s: %s\n", what, why);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what != "read" && what != "write") {
    std::fprintf(stderr, "usage: streams read|write\n");
    return 1;
  }
  unsigned writes = what == "write" ? 1 : 0;
  const std::size_t bytes = std::size_t{writes != 0 ? 512U : 256U} << 20U;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr buffer = 0;
  CUevent begin = nullptr, end = nullptr;
  need(cuInit(0), "the driver");
  need(cuDeviceGet(&device, 0), "the card");
  need(cuDevicePrimaryCtxRetain(&context, device), "a context");
  need(cuCtxSetCurrent(context), "a context");
  need(cuModuleLoadData(&module, kernels), "loading the kernel");
  need(cuModuleGetFunction(&kernel, module, "stream"), "the kernel");
  need(cuMemAlloc(&buffer, bytes), "memory");
  need(cuMemsetD8(buffer, 0, bytes), "memory");
  need(cuEventCreate(&begin, 0), "event");
  need(cuEventCreate(&end, 0), "event");
  unsigned long long words = bytes / 16;
  void* arguments[] = {&buffer, &words, &writes};
  constexpr unsigned launches = 10'000;
  for (unsigned repeat = 0; writes != 0 || repeat < 4; ++repeat) {
    need(cuEventRecord(begin, nullptr), "event");
    for (unsigned i = 0; i < launches; ++i) {
      need(cuLaunchKernel(kernel, 264, 1, 1, 512, 1, 1, 0, nullptr, arguments, nullptr), "launch");
    }
    need(cuEventRecord(end, nullptr), "event");
    need(cuEventSynchronize(end), "the kernels");
    float milliseconds = 0;
    need(cuEventElapsedTime(&milliseconds, begin, end), "time");
    if (writes == 0) std::printf("%.3f us\n", 1000.0 * milliseconds / launches);
  }
}
