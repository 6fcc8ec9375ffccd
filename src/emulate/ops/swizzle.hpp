// How tensor copies and products of warpgroups mix up the banks of shared memory.
#pragma once

#include <cstdint>

namespace demarc::emulate {

// Bits 4 to 6 of the address are XORed with bits 7 to 9, as many as `width` has: 32, 64 or 128
// bytes; 0: none.
[[nodiscard]] constexpr std::uint64_t swizzled_address(std::uint64_t address, unsigned width) {
  constexpr unsigned from = 7;
  constexpr unsigned to = 4;
  if (width == 0) return address;
  const std::uint64_t ones = (width >> to) - 1;
  return address ^ (address >> from & ones) << to;
}

}  // namespace demarc::emulate
