// Numbers of SMs as people write them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace demarc::study {

// {0, 1, 2, 5} -> "0-2, 5"
[[nodiscard]] std::string number_ranges(std::span<const std::uint32_t> ascending);

}  // namespace demarc::study
