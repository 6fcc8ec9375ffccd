// Which colour of the memory each part has: the same on real and simulated GPUs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::study {

// `chosen` of the first parts, as --colors says; the others have the colour of their own number.
// There are `colors` of them.
[[nodiscard]] Result<std::vector<std::uint32_t>> colors_of_parts(
    std::uint32_t colors, std::uint32_t parts, std::span<const std::uint32_t> chosen);

}  // namespace demarc::study
