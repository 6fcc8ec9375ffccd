// Numbers of SMs as people write them.
#pragma once

#include <span>
#include <string>

#include "demarc/device/units.hpp"

namespace demarc::study {

// {0, 1, 2, 5} -> "0-2, 5"
[[nodiscard]] std::string number_ranges(std::span<const gpu::SmIndex> ascending);

}  // namespace demarc::study
