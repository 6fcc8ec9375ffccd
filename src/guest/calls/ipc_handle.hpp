// What cuIpcGetMemHandle() gives in a tenant. It is only a request: the server looks up the key
// among the ranges of the asking process's tenant, and place and size must lie in the range.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/driver/driver_types.hpp"

namespace demarc::cuda {

struct IpcHandle {
  std::string key;          // the range has it (lease::Lent): 32 hexadecimal digits
  std::uint64_t place = 0;  // where the allocation begins in the range
  std::uint64_t bytes = 0;  // the allocation has, as its program asked for
  friend bool operator==(const IpcHandle&, const IpcHandle&) = default;
};

// invalid_input if the key is none.
[[nodiscard]] Result<CuIpcHandle> packed(const IpcHandle& handle);
// Nothing: Demarc did not write it.
[[nodiscard]] std::optional<IpcHandle> unpacked(const CuIpcHandle& bytes);

}  // namespace demarc::cuda
