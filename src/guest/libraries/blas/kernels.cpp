// Finds the driver that the program has loaded, loads modules per context and launches kernels.
#include "kernels.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "blas_kernels_ptx.hpp"
#include "refusals.hpp"

namespace demarc::blas {
namespace {

using Module = void*;
using Function = void*;

// Where the driver has a newer form of a function, the one that programs get today.
#define DEMARC_BLAS_DRIVER(row)                                                                    \
  row(cuInit, "cuInit", (unsigned)) row(cuCtxGetCurrent, "cuCtxGetCurrent", (Context*)) row(       \
      cuCtxSetCurrent, "cuCtxSetCurrent", (Context)) row(cuCtxGetDevice, "cuCtxGetDevice", (int*)) \
      row(cuDeviceGet, "cuDeviceGet", (int*, int))                                                 \
          row(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int*, int, int)) row(                 \
              cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context*, int))               \
              row(cuModuleLoadData, "cuModuleLoadData", (Module*, const void*)) row(               \
                  cuModuleGetFunction, "cuModuleGetFunction", (Function*, Module, const char*))    \
                  row(cuFuncSetAttribute, "cuFuncSetAttribute", (Function, int, int))              \
                      row(cuMemAlloc, "cuMemAlloc_v2", (unsigned long long*, std::size_t))         \
                          row(cuMemFree, "cuMemFree_v2", (unsigned long long))                     \
                              row(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                       \
                                  (void*, unsigned long long, std::size_t, Stream))                \
                                  row(cuStreamSynchronize, "cuStreamSynchronize", (Stream))        \
                                      row(cuLaunchKernel, "cuLaunchKernel",                        \
                                          (Function, unsigned, unsigned, unsigned, unsigned,       \
                                           unsigned, unsigned, unsigned, Stream, void**, void**))
// These may be missing in an older driver.
#define DEMARC_BLAS_NEWER_DRIVER(row)                           \
  row(cuCtxGetId, "cuCtxGetId", (Context, unsigned long long*)) \
      row(cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode", (int*))

struct Driver {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration, no expression
#define DEMARC_BLAS_FIELD(field, name, parameters) int(*field) parameters = nullptr;
  DEMARC_BLAS_DRIVER(DEMARC_BLAS_FIELD)
  DEMARC_BLAS_NEWER_DRIVER(DEMARC_BLAS_FIELD)
#undef DEMARC_BLAS_FIELD
  bool whole = false;
};

Driver load_driver() {
  Driver driver;
  const char* path = std::getenv("DEMARC_LIBCUDA");
  if (path == nullptr || *path == '\0') path = "libcuda.so.1";
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return driver;
  driver.whole = true;
#define DEMARC_BLAS_LOAD(field, name, parameters) \
  driver.field = reinterpret_cast<decltype(driver.field)>(::dlsym(library, name));
#define DEMARC_BLAS_NEED(field, name, parameters) \
  DEMARC_BLAS_LOAD(field, name, parameters)       \
  driver.whole = driver.whole && driver.field != nullptr;
  DEMARC_BLAS_DRIVER(DEMARC_BLAS_NEED)
  DEMARC_BLAS_NEWER_DRIVER(DEMARC_BLAS_LOAD)
#undef DEMARC_BLAS_NEED
#undef DEMARC_BLAS_LOAD
  return driver;
}

const Driver& driver() {
  static const Driver found = load_driver();
  return found;
}

constexpr int max_dynamic_shared_bytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int capability_major = 75;
constexpr int oldest_card = 8;
constexpr int relaxed_capture = 2;

// While a stream is captured, the driver refuses calls such as loading a module unless the thread
// says that it knows what it does.
class RelaxedCapture {
 public:
  RelaxedCapture() { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() {
    if (driver().cuThreadExchangeStreamCaptureMode != nullptr) {
      driver().cuThreadExchangeStreamCaptureMode(&mode_);
    }
  }
  int mode_ = relaxed_capture;
};

// A destroyed context's address may be that of a later one.
using ContextKey = std::pair<Context, unsigned long long>;

class Loaded {
 public:
  static Loaded& get() {
    static auto* const loaded = new Loaded();  // as long as the process
    return *loaded;
  }
  Code find(const char* module, const char* kernel, std::uint32_t shared, Function& function) {
    ContextKey key{current_context(), 0};
    if (key.first == nullptr) return not_initialized;
    if (driver().cuCtxGetId != nullptr) driver().cuCtxGetId(key.first, &key.second);
    const std::lock_guard lock(mutex_);
    function = functions_[{key, kernel}];
    if (function != nullptr) return success;
    const RelaxedCapture relaxed;
    Module& of_context = modules_[{key, module}];
    if (of_context == nullptr) {
      const gpu::EmbeddedPtx* image = gpu::find_ptx(embedded::blas_kernels(), module, 1000);
      if (image == nullptr) return internal_error;
      if (const int code = driver().cuModuleLoadData(&of_context, image->text.data()); code != 0) {
        of_context = nullptr;
        return fail("to load the kernels of products", code);
      }
    }
    if (const int code = driver().cuModuleGetFunction(&function, of_context, kernel); code != 0) {
      return fail(kernel, code);
    }
    if (shared > 0) {
      const int code =
          driver().cuFuncSetAttribute(function, max_dynamic_shared_bytes, static_cast<int>(shared));
      if (code != 0) return fail("the shared memory of a product", code);
    }
    functions_[{key, kernel}] = function;
    return success;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<ContextKey, std::string>, Module> modules_;
  std::map<std::pair<ContextKey, std::string>, Function> functions_;
};

}  // namespace

Code find_context() {
  const Driver& api = driver();
  if (!api.whole || api.cuInit(0) != 0) return not_initialized;
  Context context = nullptr;
  if (api.cuCtxGetCurrent(&context) != 0) return not_initialized;
  if (context == nullptr) {
    int device = 0;
    if (api.cuDeviceGet(&device, 0) != 0 || api.cuDevicePrimaryCtxRetain(&context, device) != 0 ||
        api.cuCtxSetCurrent(context) != 0) {
      return not_initialized;
    }
  }
  return card_attribute(capability_major, 0) < oldest_card ? arch_mismatch : success;
}

Context current_context() {
  Context context = nullptr;
  if (driver().cuCtxGetCurrent(&context) != 0) return nullptr;
  if (context == nullptr && find_context() == success) driver().cuCtxGetCurrent(&context);
  return context;
}

int card_attribute(int attribute, int otherwise) {
  int device = 0;
  int value = 0;
  if (driver().cuCtxGetDevice(&device) != 0 ||
      driver().cuDeviceGetAttribute(&value, attribute, device) != 0) {
    return otherwise;
  }
  return value;
}

Code launch(const char* module, const char* kernel, const KernelShape& shape, Stream stream,
            const void* arguments) {
  Function function = nullptr;
  if (const Code code = Loaded::get().find(module, kernel, shape.shared_bytes, function);
      code != success) {
    return code;
  }
  void* parameters[] = {const_cast<void*>(arguments)};
  const int code =
      driver().cuLaunchKernel(function, shape.grid[0], shape.grid[1], shape.grid[2], shape.threads,
                              1, 1, shape.shared_bytes, stream, parameters, nullptr);
  return code == 0 ? success : fail(kernel, code);
}

std::uint64_t allocate(std::size_t bytes) {
  const RelaxedCapture relaxed;
  unsigned long long at = 0;
  return driver().cuMemAlloc(&at, bytes) == 0 ? at : 0;
}

void release(std::uint64_t memory) {
  if (memory != 0) driver().cuMemFree(memory);
}

Code copy_to_host(void* to, std::uint64_t from, std::size_t bytes, Stream stream) {
  int code = driver().cuMemcpyDtoHAsync(to, from, bytes, stream);
  if (code == 0) code = driver().cuStreamSynchronize(stream);
  return code == 0 ? success : fail("a copy", code);
}

}  // namespace demarc::blas
