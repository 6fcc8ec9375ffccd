// The driver's table of callbacks, made for its debuggers and profilers. It is undocumented and
// reached by cuGetExportTable. There is one subscription per process.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/cuda/driver_types.hpp"

namespace demarc::cuda {

using GetExportTable = CuResult (*)(const void** table, const CuUuid* id);

class CallbackTable {
 public:
  using Callback = void (*)(void* user, int domain, int id, const void* params);

  // missing_capability if the driver has no such table, if its layout is unknown, or if another
  // tool holds the subscription. `version` is the driver's, for messages.
  Result<void> subscribe(GetExportTable get_table, const std::string& version, Callback callback,
                         void* user);
  // The driver calls back for these from now on.
  Result<void> enable(int domain, std::span<const int> ids) const;
  // The same for all ids of the domain, which begin with 1. missing_capability when there is none.
  Result<void> enable_all(int domain) const;

 private:
  using EnableFunction = CuResult (*)(std::uint32_t on, std::uint32_t handle, int domain, int id);
  EnableFunction enable_ = nullptr;
  std::uint32_t handle_ = 0;
};

}  // namespace demarc::cuda
