// The instructions that insert the bits of parities into a linear address.
#pragma once

#include <string>

#include "demarc/ptx/colored.hpp"

namespace demarc::ptx {

// They change %demarc_a. The masks fit together.
[[nodiscard]] std::string parity_arithmetic(const ColoredAddressing& addressing);

}  // namespace demarc::ptx
