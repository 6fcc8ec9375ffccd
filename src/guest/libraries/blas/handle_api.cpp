// cublasCreate() to cublasDestroy(), and what a handle is set to. Functions without a handle, such
// as cublasGetStatusString(), stay those of NVIDIA's library.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "handle.hpp"
#include "kernels.hpp"
#include "refusals.hpp"

namespace demarc::blas {
namespace {

constexpr int version_without_library = 130000;

// NVIDIA's library, where the process has loaded it, also for one of its libraries alone
// (RTLD_LOCAL).
int note_cublas(dl_phdr_info* library, std::size_t, void* path) {
  const std::string_view name = library->dlpi_name;
  if (name.substr(name.rfind('/') + 1).substr(0, 12) != "libcublas.so") return 0;
  *static_cast<std::string*>(path) = name;
  return 1;
}

void* property_of_loaded() {
  std::string path;
  ::dl_iterate_phdr(&note_cublas, &path);
  void* const library = path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return library == nullptr ? nullptr : ::dlsym(library, "cublasGetProperty");
}

// That of the library that the program is linked with, or else has opened.
int version() {
  using GetProperty = Code(int type, int* value);
  void* found = ::dlsym(RTLD_NEXT, "cublasGetProperty");
  if (found == nullptr) found = property_of_loaded();
  auto* const property = reinterpret_cast<GetProperty*>(found);
  int numbers[3] = {};
  for (int type = 0; type < 3; ++type) {
    if (property == nullptr || property(type, &numbers[type]) != success) {
      return version_without_library;
    }
  }
  return numbers[0] * 10000 + numbers[1] * 100 + numbers[2];
}

// Functions that run no kernel and get no handle.
constexpr std::string_view without_handle[] = {"cublasXerbla",
                                               "cublasSetLoggerCallback",
                                               "cublasGetLoggerCallback",
                                               "cublasLoggerConfigure",
                                               "cublasSetVector",
                                               "cublasGetVector",
                                               "cublasSetMatrix",
                                               "cublasGetMatrix",
                                               "cublasGetCudartVersion",
                                               "cublasGetProperty",
                                               "cublasGetStatus",
                                               "cublasLtGetVersion",
                                               "cublasLtGetProperty",
                                               "cublasLtGetStatus",
                                               "cublasLtLogger",
                                               "cublasLtHeuristicsCache",
                                               "cublasLtGetCudartVersion",
                                               "cublasLtDisableCpuInstructionsSetMask"};

bool takes_no_handle(std::string_view name) {
  return std::any_of(
      std::begin(without_handle), std::end(without_handle),
      [name](std::string_view start) { return name.substr(0, start.size()) == start; });
}

// In the place of a function that no header of NVIDIA's has.
Code refuse_unknown() {
  return refuse_lacking("a function of cuBLAS that no header names");
}

template <class Value>
Code get(Handle* handle, Value Handle::*member, Value* value) {
  if (known(handle) == nullptr) return not_initialized;
  if (value == nullptr) return invalid_value;
  *value = handle->*member;
  return success;
}

}  // namespace

// The function of this library that has the name, one that refuses where it has none, or null for
// those of NVIDIA's that take no handle: libdemarc_compilers.so gives it to programs that open
// NVIDIA's library themselves.
DEMARC_SHOWN void* demarc_blas_function(const char* name) {
  Dl_info own = {};
  Dl_info found = {};
  void* const function = ::dlsym(RTLD_DEFAULT, name);
  if (function != nullptr && ::dladdr(reinterpret_cast<void*>(&version), &own) != 0 &&
      ::dladdr(function, &found) != 0 && own.dli_fbase == found.dli_fbase) {
    return function;
  }
  return takes_no_handle(name) ? nullptr : reinterpret_cast<void*>(&refuse_unknown);
}

// NOLINTBEGIN(readability-identifier-naming): the names are NVIDIA's
DEMARC_SHOWN Code cublasCreate_v2(Handle** handle) {
  if (handle == nullptr) return invalid_value;
  *handle = nullptr;
  if (const Code code = find_context(); code != success) return code;
  auto* const made = new Handle();
  std::uint64_t& sum = made->sums[{current_context(), nullptr}];
  if ((sum = allocate(Handle::result_bytes)) == 0) {
    delete made;
    return alloc_failed;
  }
  *handle = made;
  return success;
}

DEMARC_SHOWN Code cublasDestroy_v2(Handle* handle) {
  if (known(handle) == nullptr) return not_initialized;
  for (const auto& [of, memory] : handle->sums) release(memory);
  handle->mark = 0;
  delete handle;
  return success;
}

DEMARC_SHOWN Code cublasGetVersion_v2(Handle* handle, int* value) {
  static_cast<void>(handle);  // as NVIDIA's library, which takes none, too
  if (value == nullptr) return invalid_value;
  *value = version();
  return success;
}

DEMARC_SHOWN Code cublasSetStream_v2(Handle* handle, Stream stream) {
  if (known(handle) == nullptr) return not_initialized;
  handle->stream = stream;
  return success;
}

DEMARC_SHOWN Code cublasGetStream_v2(Handle* handle, Stream* stream) {
  return get(handle, &Handle::stream, stream);
}

// The kernels need none.
DEMARC_SHOWN Code cublasSetWorkspace_v2(Handle* handle, void* workspace, std::size_t bytes) {
  static_cast<void>(workspace);
  static_cast<void>(bytes);
  return known(handle) == nullptr ? not_initialized : success;
}

DEMARC_SHOWN Code cublasSetPointerMode_v2(Handle* handle, PointerMode mode) {
  if (known(handle) == nullptr) return not_initialized;
  if (mode != host_pointers && mode != device_pointers) return invalid_value;
  handle->pointers = mode;
  return success;
}

DEMARC_SHOWN Code cublasGetPointerMode_v2(Handle* handle, PointerMode* mode) {
  return get(handle, &Handle::pointers, mode);
}

// No kernel here uses atomics.
DEMARC_SHOWN Code cublasSetAtomicsMode(Handle* handle, int mode) {
  if (known(handle) == nullptr) return not_initialized;
  if (mode != 0 && mode != 1) return invalid_value;
  handle->atomics = mode;
  return success;
}

DEMARC_SHOWN Code cublasGetAtomicsMode(Handle* handle, int* mode) {
  return get(handle, &Handle::atomics, mode);
}

DEMARC_SHOWN Code cublasSetMathMode(Handle* handle, MathMode mode) {
  if (known(handle) == nullptr) return not_initialized;
  const MathMode without_flag = mode & ~disallow_reduced_precision;
  if (without_flag < default_math || without_flag > tf32_math) {
    return refuse("cublasSetMathMode",
                  "it computes in no other mathematics than the default, "
                  "CUBLAS_PEDANTIC_MATH and CUBLAS_TF32_TENSOR_OP_MATH");
  }
  handle->math = mode;
  return success;
}

DEMARC_SHOWN Code cublasGetMathMode(Handle* handle, MathMode* mode) {
  return get(handle, &Handle::math, mode);
}

// A hint, which nothing follows: a tenant's SMs are those of its part.
DEMARC_SHOWN Code cublasSetSmCountTarget(Handle* handle, int count) {
  if (known(handle) == nullptr) return not_initialized;
  if (count < 0) return invalid_value;
  handle->sm_count_target = count;
  return success;
}

DEMARC_SHOWN Code cublasGetSmCountTarget(Handle* handle, int* count) {
  return get(handle, &Handle::sm_count_target, count);
}
// NOLINTEND(readability-identifier-naming)

}  // namespace demarc::blas
