// The parameters of the driver's callbacks: undocumented, seen on CUDA 13.0. Element 0 (32
// bits of it) is their size in bytes; the rest are 8-byte elements.
#pragma once

#include <cstddef>
#include <cstdint>

namespace demarc::cuda {

// For the launch callback.
inline constexpr std::size_t descriptor_index = 4;
inline constexpr std::uint32_t least_params_bytes = 40;
inline constexpr std::uint32_t max_params_bytes = 256;

// For the callbacks of functions: the site holds the function's number and, above, 0 on entry and 1
// on exit.
inline constexpr std::size_t result_index = 5;
inline constexpr std::size_t arguments_index = 7;
inline constexpr std::size_t site_index = 10;

inline std::uint32_t params_bytes(const void* params) {
  return *static_cast<const std::uint32_t*>(params);
}

}  // namespace demarc::cuda
