// The texts of devices/*.json, put into the library by src/gpu/CMakeLists.txt.
#pragma once

#include <span>
#include <string_view>

namespace demarc::gpu {

struct BuiltinDevice {
  std::string_view name;
  std::string_view text;
};

[[nodiscard]] std::span<const BuiltinDevice> builtin_devices();

}  // namespace demarc::gpu
