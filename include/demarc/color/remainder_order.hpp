// Pages and remainders in the order that makes colours of them (color/remainder_coloring.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/remainder_model.hpp"

namespace demarc::color {

// An order in which the remainders of the pages go on, from a page of remainder 0: place i holds a
// page of remainder i * numbers_a_page modulo the modulus. The order ends where no such page is
// left.
[[nodiscard]] std::vector<std::uint32_t> order_by_remainder(const RemainderModel& model,
                                                            std::span<const PageRemainder> pages);

// The nearer L2 side of each remainder; sides[i] is the side of column i of the latencies.
[[nodiscard]] std::vector<std::uint32_t> sides_of_remainders(const RemainderModel& model,
                                                             std::span<const std::uint32_t> sides);

// missing_capability if remainders cannot be divided into so many parts, each of whose paths to
// memory are its own.
[[nodiscard]] Result<void> check_remainder_parts(std::uint32_t parts, std::uint32_t paths);

// Makes `parts` (2, 3 or 4) runs of consecutive remainders; check_remainder_parts() says which. A
// half is a whole side, the first one side 0; a third has a third of all `paths`, so the second one
// lies on both sides; a quarter is one of the outermost of the `paths` / 2 paths of a side.
[[nodiscard]] Result<std::vector<RemainderColoring::Window>> windows_by_side(
    std::span<const std::uint32_t> side_of_remainder, std::uint32_t parts, std::uint32_t paths);

}  // namespace demarc::color
