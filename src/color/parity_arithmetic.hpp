// The instructions that insert the bits of parities into a linear address.
#pragma once

#include <string>

#include "demarc/color/translation.hpp"

namespace demarc::color {

// invalid_input if the masks, the bits that are inserted and the colour do not fit together.
[[nodiscard]] Result<void> check_parities(const Parities& parities);

// They change %demarc_a. The parities were checked.
[[nodiscard]] std::string parity_arithmetic(const Parities& addressing);

}  // namespace demarc::color
