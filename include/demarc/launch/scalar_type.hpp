// Types of numbers in launches.
#pragma once

#include <cstdint>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::gpu {

enum class ScalarType { i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64 };

[[nodiscard]] std::uint32_t size_of(ScalarType type);  // bytes
[[nodiscard]] std::string_view name_of(ScalarType type);
[[nodiscard]] std::string_view numpy_name_of(ScalarType type);  // "f4"
[[nodiscard]] bool is_floating(ScalarType type);
[[nodiscard]] Result<ScalarType> parse_scalar_type(std::string_view text, std::string_view where);

}  // namespace demarc::gpu
