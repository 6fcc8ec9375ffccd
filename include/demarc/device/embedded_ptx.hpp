// PTX that was compiled from our own device code at build time and lies inside the program
// (cmake/DemarcPtx.cmake).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace demarc::gpu {

struct EmbeddedPtx {
  std::string_view name;     // name of the source: "vecadd" for vecadd.cu
  std::uint32_t target = 0;  // 75 for sm_75
  std::string_view text;
};

// The module `name` for the highest target not above `target`; nullptr when there is none.
[[nodiscard]] inline const EmbeddedPtx* find_ptx(std::span<const EmbeddedPtx> modules,
                                                 std::string_view name, std::uint32_t target) {
  const EmbeddedPtx* best = nullptr;
  for (const EmbeddedPtx& module : modules) {
    if (module.name != name || module.target > target) continue;
    if (best == nullptr || module.target > best->target) best = &module;
  }
  return best;
}

}  // namespace demarc::gpu
