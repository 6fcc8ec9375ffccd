// Rounding of places in memory.
#pragma once

#include <cstdint>

namespace demarc::emulate {

[[nodiscard]] constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace demarc::emulate
