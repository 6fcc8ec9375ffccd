// Asks a card's driver what Demarc relies on: driver ids | stack FILE | costs FILE | cooperative
// FILE | runs FILE SECONDS.
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

void check(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  const char* text = "?";
  cuGetErrorString(code, &text);
  std::printf("%s: error %d, %s\n", what, static_cast<int>(code), text);
  std::exit(1);
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The callbacks that the driver enables, by domain; the table as src/driver/callback_table.cpp
// has it.
int print_ids() {
  constexpr unsigned char id[16] = {0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
                                    0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b};
  using Subscribe = int (*)(unsigned*, void (*)(void*, int, int, const void*), void*);
  using Enable = int (*)(unsigned, unsigned, int, int);
  const void* table = nullptr;
  check(cuGetExportTable(&table, reinterpret_cast<const CUuuid*>(id)), "the callback table");
  const auto* entries = static_cast<void* const*>(table);
  unsigned handle = 0;
  reinterpret_cast<Subscribe>(entries[3])(
      &handle, [](void*, int, int, const void*) {}, nullptr);
  const auto enable = reinterpret_cast<Enable>(entries[6]);
  for (int domain = 1; domain < 16; ++domain) {
    int first_refused = 1;
    while (first_refused < 3000 && enable(1, handle, domain, first_refused) == 0) ++first_refused;
    int later = 0;
    for (int i = first_refused; i < 3000; ++i) later += enable(1, handle, domain, i) == 0 ? 1 : 0;
    std::printf("domain %d: ids 1 to %d, %d behind the first that is refused\n", domain,
                first_refused - 1, later);
  }
  return 0;
}

struct Asked {
  CUmodule module = nullptr;
  CUdeviceptr memory = 0;

  explicit Asked(const char* file) {
    check(cuModuleLoad(&module, file), file);
    check(cuMemAlloc(&memory, 4096), "memory");
    check(cuMemsetD32(memory, 0, 1024), "memory");
  }

  [[nodiscard]] CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    check(cuModuleGetFunction(&found, module, name), name);
    return found;
  }
};

int print_stacks(const Asked& asked) {
  for (const char* name : {"tiny", "recursive", "virtual_call"}) {
    int bytes = -1;
    check(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, asked.function(name)),
          name);
    std::printf("%s: LOCAL_SIZE_BYTES %d\n", name, bytes);
  }
  return 0;
}

int print_costs(const Asked& asked) {
  constexpr int launches = 100000;
  CUfunction tiny = asked.function("tiny");
  CUdeviceptr memory = asked.memory;
  void* arguments[] = {&memory};
  for (int round = 0; round < 6; ++round) {
    const auto begin = Clock::now();
    for (int i = 0; i < launches; ++i)
      check(cuLaunchKernel(tiny, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), "a launch");
    check(cuCtxSynchronize(), "launches");
    if (round > 0) std::printf("%.0f ns per launch\n", seconds_since(begin) / launches * 1e9);
  }
  return 0;
}

int try_cooperative(const Asked& asked, int multiprocessors) {
  CUfunction kernel = asked.function("grid_wait");
  int resident = 0;
  check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, 256, 0), "occupancy");
  for (int blocks : {8 * resident, multiprocessors * resident}) {
    CUdeviceptr memory = asked.memory;
    check(cuMemsetD32(memory, 0, 1024), "memory");
    void* arguments[] = {&memory, &blocks};
    const CUresult code = cuLaunchCooperativeKernel(kernel, static_cast<unsigned>(blocks), 1, 1,
                                                    256, 1, 1, 0, nullptr, arguments);
    std::printf("%d blocks: launch %d", blocks, static_cast<int>(code));
    CUresult done = code;
    const auto begin = Clock::now();
    while (code == CUDA_SUCCESS && seconds_since(begin) < 3) {
      done = cuStreamQuery(nullptr);
      if (done != CUDA_ERROR_NOT_READY) break;
    }
    std::printf(", %s\n", done == CUDA_ERROR_NOT_READY ? "hangs" : "over");
    std::fflush(stdout);
    if (done == CUDA_ERROR_NOT_READY) std::_Exit(2);
  }
  return 0;
}

int keep_running(const Asked& asked, double seconds) {
  CUfunction tiny = asked.function("tiny");
  CUdeviceptr memory = asked.memory;
  void* arguments[] = {&memory};
  const auto begin = Clock::now();
  CUresult code = CUDA_SUCCESS;
  while (code == CUDA_SUCCESS && seconds_since(begin) < seconds) {
    code = cuLaunchKernel(tiny, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
    if (code == CUDA_SUCCESS) code = cuCtxSynchronize();
  }
  std::printf("ended with %d\n", static_cast<int>(code));
  return code == CUDA_SUCCESS ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  check(cuInit(0), "cuInit");
  if (what == "ids") return print_ids();
  if (count < 3) return 1;
  CUdevice device = 0;
  CUcontext context = nullptr;
  int client = -1;
  int multiprocessors = 0;
  check(cuDeviceGetAttribute(&client, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device), "MPS_ENABLED");
  check(cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
        "multiprocessors");
  check(cuDevicePrimaryCtxRetain(&context, device), "a context");
  check(cuCtxSetCurrent(context), "a context");
  std::printf("client of MPS: %d\n", client);
  const Asked asked(words[2]);
  if (what == "stack") return print_stacks(asked);
  if (what == "costs") return print_costs(asked);
  if (what == "cooperative") return try_cooperative(asked, multiprocessors);
  return keep_running(asked, count > 3 ? std::strtod(words[3], nullptr) : 1);
}
