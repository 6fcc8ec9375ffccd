// Which lines of a page lie in one L2 slice, by a card's description.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/device/device.hpp"

namespace demarc::study {

// Offsets of the lines of 128 bytes of a page of 2 MiB that lie in the slice of its first line.
// They are the same on every page: what a page adds moves all of them to one other slice.
// missing_capability where the description does not tell.
[[nodiscard]] Result<std::vector<std::uint32_t>> one_slice_lines(const gpu::Device& card);

}  // namespace demarc::study
