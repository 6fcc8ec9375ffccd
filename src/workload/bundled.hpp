#pragma once

#include <span>
#include <string_view>

namespace demarc::workload {

struct BundledLaunch {
  std::string_view name;
  std::string_view text;
};
// In the order of their names.
[[nodiscard]] std::span<const BundledLaunch> bundled_launches();

}  // namespace demarc::workload
