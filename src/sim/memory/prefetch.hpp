// Lines of the host's cache that are wanted soon.
#pragma once

#include <cstddef>

namespace demarc::sim::memory {

inline constexpr std::size_t host_line = 64;

// Asks the host for the line at `address`, which will be read and written soon. The empty assembly
// keeps GCC from taking a function that does nothing else for free of effects and dropping it.
inline void prefetch(const void* address) {
  __builtin_prefetch(address, 1);
  asm volatile("");
}

}  // namespace demarc::sim::memory
