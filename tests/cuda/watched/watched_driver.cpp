// The functions of the driver that libdemarc_blas.so calls, each of which goes on to the stand-in.
#include "watched_driver.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <set>
#include <utility>

namespace {

using demarc::fake::WatchedDriver;
using demarc::fake::WatchedLaunch;

WatchedDriver& watched() {
  static WatchedDriver driver;
  return driver;
}

std::map<const void*, std::string>& names() {
  static std::map<const void*, std::string> of_functions;
  return of_functions;
}

std::set<const void*>& modules() {
  static std::set<const void*> loaded;
  return loaded;
}

int failure(const char* name) {
  WatchedDriver& driver = watched();
  if (driver.fails != name) return 0;
  return driver.passes-- > 0 ? 0 : driver.code;
}

template <class Function>
Function* real(const char* name) {
  static void* const library = ::dlopen(std::getenv("DEMARC_WATCHED_LIBCUDA"), RTLD_NOW);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

void note_capture_mode(const char* name) {
  constexpr int relaxed = 2;
  if (watched().capture_mode != relaxed) watched().unrelaxed.emplace_back(name);
}

}  // namespace

#define WATCHED extern "C" __attribute__((visibility("default")))
#define WATCHED_CALL(name, parameters, arguments)     \
  WATCHED int name parameters {                       \
    if (const int code = failure(#name)) return code; \
    return real<int parameters>(#name) arguments;     \
  }

WATCHED WatchedDriver* watched_driver() {
  return &watched();
}

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
WATCHED_CALL(cuInit, (unsigned flags), (flags))
WATCHED_CALL(cuCtxSetCurrent, (void* context), (context))
WATCHED_CALL(cuCtxGetDevice, (int* device), (device))
WATCHED_CALL(cuDeviceGet, (int* device, int ordinal), (device, ordinal))
WATCHED_CALL(cuDeviceGetAttribute, (int* value, int attribute, int device),
             (value, attribute, device))
WATCHED_CALL(cuDevicePrimaryCtxRetain, (void** context, int device), (context, device))
WATCHED_CALL(cuFuncSetAttribute, (void* function, int attribute, int value),
             (function, attribute, value))
WATCHED_CALL(cuMemFree_v2, (unsigned long long address), (address))
WATCHED_CALL(cuMemcpyDtoHAsync_v2,
             (void* to, unsigned long long from, std::size_t bytes, void* stream),
             (to, from, bytes, stream))
WATCHED_CALL(cuStreamSynchronize, (void* stream), (stream))

WATCHED int cuCtxGetCurrent(void** context) {
  if (const int code = failure("cuCtxGetCurrent")) return code;
  const int code = real<int(void**)>("cuCtxGetCurrent")(context);
  if (code == 0 && watched().context != nullptr) *context = watched().context;
  return code;
}

WATCHED int cuCtxGetId(void*, unsigned long long* id) {
  *id = watched().context_id;
  return 0;
}

WATCHED int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, watched().capture_mode);
  return 0;
}

WATCHED int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
  note_capture_mode("cuMemAlloc_v2");
  if (const int code = failure("cuMemAlloc_v2")) return code;
  return real<int(unsigned long long*, std::size_t)>("cuMemAlloc_v2")(address, bytes);
}

WATCHED int cuModuleLoadData(void** module, const void* image) {
  note_capture_mode("cuModuleLoadData");
  if (const int code = failure("cuModuleLoadData")) {
    *module = watched().fails.data();  // what a refused call leaves there is not known
    return code;
  }
  ++watched().modules;
  const int code = real<int(void**, const void*)>("cuModuleLoadData")(module, image);
  modules().insert(*module);
  return code;
}

WATCHED int cuModuleGetFunction(void** function, void* module, const char* name) {
  constexpr int invalid_handle = 400;
  if (const int code = failure("cuModuleGetFunction")) return code;
  if (!modules().contains(module)) return invalid_handle;
  watched().kernels.emplace_back(name);
  const int code =
      real<int(void**, void*, const char*)>("cuModuleGetFunction")(function, module, name);
  names()[*function] = name;
  return code;
}

WATCHED int cuLaunchKernel(void* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                           unsigned threads_y, unsigned threads_z, unsigned shared, void* stream,
                           void** parameters, void** extra) {
  if (const int code = failure("cuLaunchKernel")) return code;
  if (watched().launched != nullptr) {
    watched().launched({names()[function], {x, y, z}, threads, shared, stream, parameters[0]});
  }
  if (!watched().runs) return 0;
  using Launch = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void*, void**, void**);
  return real<Launch>("cuLaunchKernel")(function, x, y, z, threads, threads_y, threads_z, shared,
                                        stream, parameters, extra);
}
// NOLINTEND(readability-identifier-naming)
