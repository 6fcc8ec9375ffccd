// The driver's table of callbacks, made for its debuggers and profilers. It is undocumented and
// reached by cuGetExportTable. There is one subscription per process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/driver/driver_types.hpp"

namespace demarc::cuda {

using GetExportTable = CuResult (*)(const void** table, const CuUuid* id);

// By this cuGetExportTable() gives the table.
inline constexpr CuUuid callback_table_id = {{0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e, 0x90,
                                              0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b}};

class CallbackTable {
 public:
  using Callback = void (*)(void* user, int domain, int id, const void* params);

  // missing_capability if the driver has no such table, if its layout is unknown, or if another
  // tool holds the subscription. `version` is the driver's, for messages.
  Result<void> subscribe(GetExportTable get_table, const std::string& version, Callback callback,
                         void* user);
  // The driver calls back for these from now on.
  Result<void> enable(int domain, std::span<const int> ids) const;
  // The same for these functions, of which an older driver may have some not yet.
  Result<void> enable_existing(std::span<const int> functions) const;
  // The same for all functions of the driver, those that are not known too. missing_capability if
  // one of the known ones would go unwatched: the driver refuses its callback although it enables
  // one with a larger number, or although it exports the function.
  Result<void> enable_functions() const;

 private:
  using EnableFunction = CuResult (*)(std::uint32_t on, std::uint32_t handle, int domain, int id);
  [[nodiscard]] bool is_exported(std::string_view function) const;

  GetExportTable get_table_ = nullptr;
  EnableFunction enable_ = nullptr;
  std::uint32_t handle_ = 0;
};

}  // namespace demarc::cuda
