// Values of arguments and of buffers' elements, from text.
#pragma once

#include <optional>
#include <string_view>

#include "demarc/launch/launch.hpp"

namespace demarc::gpu {

// "nan", "inf", with or without a minus, and for f32 and f64 the bits as PTX writes them:
// 0f7fc00000, 0d7ff8000000000000. Nothing where `text` is neither.
[[nodiscard]] std::optional<Scalar> parse_special(ScalarType type, std::string_view text);

// A value that fits `type`; whole numbers may be hexadecimal, floating ones special.
[[nodiscard]] Result<Scalar> parse_scalar(ScalarType type, std::string_view text,
                                          std::string_view where);

// Stands before bytes that are written out.
inline constexpr std::string_view hex_mark = "hex:";

// Bytes in memory order, two digits each: what stands behind "hex:".
[[nodiscard]] Result<std::vector<std::byte>> parse_hex(std::string_view digits,
                                                       const std::string& where);

}  // namespace demarc::gpu
