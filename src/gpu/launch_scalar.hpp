#pragma once

#include <string_view>

#include "demarc/gpu/launch.hpp"

namespace demarc::gpu {

// A value that fits `type`; whole numbers may be hexadecimal.
[[nodiscard]] Result<Scalar> parse_scalar(ScalarType type, std::string_view text,
                                          std::string_view where);

}  // namespace demarc::gpu
