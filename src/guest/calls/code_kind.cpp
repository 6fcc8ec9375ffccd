// Calls the driver for modules and for libraries, with the program's options.
#include "calls/code_kind.hpp"

#include <cstdint>
#include <vector>

namespace demarc::cuda {
namespace {

// Of a library that a program loads.
struct LibraryOptions {
  std::vector<int> names;
  std::vector<void*> values;
};

// The rewritten text goes after the call, whatever the program promises of its own code: the driver
// has to copy it.
LibraryOptions without_promise(const LoadLibrary& given) {
  constexpr int binary_is_preserved = 1;  // CU_LIBRARY_BINARY_IS_PRESERVED
  const int* names = given.library_options;
  void* const* values = given.library_values;
  const unsigned count = names == nullptr ? 0 : given.library_count;
  LibraryOptions kept;
  for (unsigned i = 0; i < count; ++i) {
    if (names[i] == binary_is_preserved) continue;
    kept.names.push_back(names[i]);
    kept.values.push_back(values == nullptr ? nullptr : values[i]);
  }
  return kept;
}

// Options of the driver's compiler: the program's own, with `calm` another level of optimisation,
// and all processors where the driver has this option, because coloured kernels take long to
// compile.
class JitOptions {
 public:
  JitOptions(const DriverApi& api, unsigned count, int* names, void** values, bool calm)
      : given_values_(values) {
    int version = 0;
    const bool splits =
        api.cuDriverGetVersion(&version) == cu_success && version >= with_split_compile;
    bool split_given = false;
    for (unsigned i = 0; i < count; ++i) {
      if (calm && names[i] == optimization_level) continue;
      split_given = split_given || names[i] == split_compile;
      names_.push_back(names[i]);
      places_.push_back(i);
      values_.push_back(values[i]);
    }
    if (calm) add(optimization_level, calm_level);
    if (splits && !split_given) add(split_compile, all_processors);
  }
  // The driver writes into them what it has to say: sizes of logs, times.
  ~JitOptions() {
    for (std::size_t i = 0; i < places_.size(); ++i) given_values_[places_[i]] = values_[i];
  }
  JitOptions(const JitOptions&) = delete;
  JitOptions& operator=(const JitOptions&) = delete;

  unsigned count() { return static_cast<unsigned>(names_.size()); }
  int* names() { return names_.data(); }
  void** values() { return values_.data(); }

 private:
  static constexpr int optimization_level = 7;  // CU_JIT_OPTIMIZATION_LEVEL
  static constexpr std::uintptr_t calm_level = 1;
  static constexpr int split_compile = 34;  // CU_JIT_SPLIT_COMPILE, since CUDA 13.0
  static constexpr std::uintptr_t all_processors = 0;
  static constexpr int with_split_compile = 13000;

  void add(int name, std::uintptr_t value) {
    names_.push_back(name);
    values_.push_back(reinterpret_cast<void*>(value));  // NOLINT: as the driver takes numbers
  }

  void** given_values_;
  std::vector<int> names_;
  std::vector<void*> values_;
  std::vector<unsigned> places_;  // where the first ones stand in the program's
};

}  // namespace

CodeKind module_kind(const DriverApi& api, unsigned count, int* options, void** values) {
  return {[&api, count, options, values](CodeHandle* handle, const char* text, bool calm) {
            CuModule module = nullptr;
            JitOptions own(api, count, options, values, calm);
            const CuResult code =
                api.cuModuleLoadDataEx(&module, text, own.count(), own.names(), own.values());
            *handle = module;
            return code;
          },
          [&api](CodeHandle handle) {
            return api.cuModuleUnload(static_cast<CuModule>(const_cast<void*>(handle)));
          },
          [&api](CuFunction* function, CodeHandle handle, const char* name) {
            return api.cuModuleGetFunction(function,
                                           static_cast<CuModule>(const_cast<void*>(handle)), name);
          },
          [&api](DevicePointer* address, CodeHandle handle, const char* name) {
            return api.cuModuleGetGlobal_v2(address, nullptr,
                                            static_cast<CuModule>(const_cast<void*>(handle)), name);
          },
          [&api](int* bytes, CuFunction function) {
            return api.cuFuncGetAttribute(bytes, function_local_bytes, function);
          }};
}

// The driver lets a kernel of a library stand for its function of the current context where it is
// launched.
CodeKind library_kind(const DriverApi& api, const LoadLibrary& given) {
  return {[&api, given](CodeHandle* handle, const char* text, bool calm) {
            CuLibrary library = nullptr;
            LibraryOptions kept = without_promise(given);
            JitOptions own(api, given.count, given.options, given.values, calm);
            const CuResult code = api.cuLibraryLoadData(
                &library, text, own.names(), own.values(), own.count(), kept.names.data(),
                kept.values.data(), static_cast<unsigned>(kept.names.size()));
            *handle = library;
            return code;
          },
          [&api](CodeHandle handle) {
            return api.cuLibraryUnload(static_cast<CuLibrary>(const_cast<void*>(handle)));
          },
          [&api](CuFunction* function, CodeHandle handle, const char* name) {
            CuKernel kernel = nullptr;
            const CuResult code = api.cuLibraryGetKernel(
                &kernel, static_cast<CuLibrary>(const_cast<void*>(handle)), name);
            *function = reinterpret_cast<CuFunction>(kernel);
            return code;
          },
          [&api](DevicePointer* address, CodeHandle handle, const char* name) {
            return api.cuLibraryGetGlobal(address, nullptr,
                                          static_cast<CuLibrary>(const_cast<void*>(handle)), name);
          },
          // Of its attributes the driver tells for a function alone.
          [&api](int* bytes, CuFunction kernel) {
            CuFunction function = nullptr;
            if (api.cuKernelGetFunction == nullptr) return cu_error_not_supported;
            const CuResult code =
                api.cuKernelGetFunction(&function, reinterpret_cast<CuKernel>(kernel));
            return code == cu_success
                       ? api.cuFuncGetAttribute(bytes, function_local_bytes, function)
                       : code;
          },
          true};
}

}  // namespace demarc::cuda
