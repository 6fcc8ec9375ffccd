// The driver's functions that are known, by the numbers of their callbacks: those of CUDA 13.0.
#pragma once

#include <span>
#include <string_view>

namespace demarc::cuda {

inline constexpr int functions_known_until = 13000;  // as cuDriverGetVersion() tells it

// By number; the first, 0, is the empty name of none.
[[nodiscard]] std::span<const std::string_view> function_names();

// Of one version, whichever default stream it means: "cuCtxCreate_v4" is known, and a
// "cuCtxCreate_v5" of a later driver is not.
[[nodiscard]] bool is_known_function(std::string_view versioned_name);

}  // namespace demarc::cuda
