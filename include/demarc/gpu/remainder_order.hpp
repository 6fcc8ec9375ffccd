// Pages and remainders in the order that makes colours of them (gpu/remainder_coloring.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/gpu/remainder_model.hpp"

namespace demarc::gpu {

// An order in which the remainders of the pages go on, from a page of remainder 0: place i holds a
// page of remainder i * numbers_a_page modulo the modulus. Ends where such a page is lacking.
[[nodiscard]] std::vector<std::uint32_t> order_by_remainder(const RemainderModel& model,
                                                            std::span<const PageRemainder> pages);

// Of each remainder, the L2 side that is nearer; sides[i] is that of column i of the latencies.
[[nodiscard]] std::vector<std::uint32_t> sides_of_remainders(const RemainderModel& model,
                                                             std::span<const std::uint32_t> sides);

// `parts` (2 or 4) runs of remainders, each on one side, the first ones on side 0: whole sides, or
// the outermost of the `paths` / 2 paths to memory of each side, whose remainders follow each
// other.
[[nodiscard]] Result<std::vector<RemainderColoring::Window>> windows_by_side(
    std::span<const std::uint32_t> side_of_remainder, std::uint32_t parts, std::uint32_t paths);

}  // namespace demarc::gpu
