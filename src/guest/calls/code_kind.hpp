// How modules and libraries are handed to the driver.
#pragma once

#include <functional>

#include "demarc/driver/call_parameters.hpp"
#include "demarc/driver/driver_api.hpp"

namespace demarc::cuda {

// A module or a library.
using CodeHandle = const void*;
// How one kind of code is handed to the driver.
struct CodeKind {
  // `calm`: with less optimisation, which takes fewer registers.
  std::function<CuResult(CodeHandle* handle, const char* text, bool calm)> load;
  std::function<CuResult(CodeHandle handle)> unload;
  std::function<CuResult(CuFunction* function, CodeHandle handle, const char* name)> function;
  std::function<CuResult(DevicePointer* address, CodeHandle handle, const char* name)> variable;
  std::function<CuResult(int* bytes, CuFunction function)> local_bytes;  // per thread
  bool library = false;
};

// For what the program has given: its options, to which the driver writes what it has to say.
[[nodiscard]] CodeKind module_kind(const DriverApi& api, unsigned count, int* options,
                                   void** values);
[[nodiscard]] CodeKind library_kind(const DriverApi& api, const LoadLibrary& given);

}  // namespace demarc::cuda
