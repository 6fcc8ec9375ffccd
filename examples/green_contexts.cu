// A program that divides a GPU by green contexts of its own and asks Demarc whether they hold.
// Build: nvcc -std=c++17 -I include -o green_contexts examples/green_contexts.cu -L build/release
// -ldemarc -lcuda Run:   LD_LIBRARY_PATH=build/release ./green_contexts
#include <cuda.h>

#include <cstdio>

#include "demarc/demarc.h"

int fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  return 2;
}

int main() {
  CUdevice device;
  CUcontext primary;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) return fail("no GPU");
  cuDevicePrimaryCtxRetain(&primary, device);
  cuCtxSetCurrent(primary);

  CUdevResource all, parts[2], rest;
  unsigned count = 2;
  cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM);
  if (cuDevSmResourceSplitByCount(parts, &count, &all, &rest, 0, all.sm.smCount / 4) !=
          CUDA_SUCCESS ||
      count != 2) {
    return fail("cannot split the SMs");
  }
  CUstream streams[2];
  for (int p = 0; p < 2; ++p) {
    CUdevResourceDesc desc;
    CUgreenCtx context;
    cuDevResourceGenerateDesc(&desc, &parts[p], 1);
    if (cuGreenCtxCreate(&context, desc, device, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS) {
      return fail("cannot create a green context");
    }
    cuGreenCtxStreamCreate(&streams[p], context, CU_STREAM_NON_BLOCKING, 0);
  }

  demarc_card* card = nullptr;
  if (demarc_open_observer(0, &card) != 0) return fail(demarc_error());
  int shared = 0;
  demarc_tpcs own[2];
  for (int p = 0; p < 2; ++p) {
    own[p] = {{0, 0}};
    // Which TPCs blocks of this context reach: those without which blocks would be outside.
    for (uint32_t t = 0; t < demarc_tpc_count(card); ++t) {
      demarc_tpcs others = {{~0ull, ~0ull}};
      others.enabled[t / 64] &= ~(1ull << (t % 64));
      uint64_t outside = 0;
      if (demarc_count_outside(card, streams[p], &others, &outside) != 0)
        return fail(demarc_error());
      if (outside != 0) own[p].enabled[t / 64] |= 1ull << (t % 64);
    }
    uint64_t outside = 0;
    if (demarc_count_outside(card, streams[p], &own[p], &outside) != 0) return fail(demarc_error());
    std::printf("green context %d of %u SMs: TPCs %016llx%016llx, %llu blocks outside\n", p,
                parts[p].sm.smCount, static_cast<unsigned long long>(own[p].enabled[1]),
                static_cast<unsigned long long>(own[p].enabled[0]),
                static_cast<unsigned long long>(outside));
  }
  // A claim that does not hold is told as plainly.
  uint64_t elsewhere = 0;
  if (demarc_count_outside(card, streams[0], &own[1], &elsewhere) != 0) return fail(demarc_error());
  std::printf("context 0 claimed to be on the TPCs of context 1: %llu blocks outside, %s\n",
              static_cast<unsigned long long>(elsewhere),
              elsewhere == 0 ? "HOLDS" : "DOES NOT HOLD");
  shared =
      (own[0].enabled[0] & own[1].enabled[0]) != 0 || (own[0].enabled[1] & own[1].enabled[1]) != 0;
  std::printf("the contexts %s\n", shared ? "SHARE TPCs" : "are apart");
  demarc_close(card);
  return shared ? 3 : 0;
}
