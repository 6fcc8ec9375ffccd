// The instructions that insert the bits of parities into a linear address.
#pragma once

#include <string>

#include "demarc/color/translation.hpp"

namespace demarc::color {

// They change %demarc_a. The masks fit together.
[[nodiscard]] std::string parity_arithmetic(const Parities& addressing);

}  // namespace demarc::color
