// Masks that annihilate most of a set of address differences, some of which are wrong.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/random.hpp"

namespace demarc::probe {

struct RobustNullSpace {
  std::vector<std::uint64_t> masks;  // low-pivot basis
  std::size_t inliers = 0;           // differences that every mask annihilates
  std::size_t rank = 0;              // of the inliers; inliers - rank of them confirm the result
};

// The null space within `columns` that at least `least_share` of the differences agree with, or no
// masks when there is none of dimension 1 or more. Random subsets are solved until one is free of
// wrong differences (RANSAC); with a share e of wrong ones and rank r that takes about
// (1 - e)^-r tries.
[[nodiscard]] RobustNullSpace robust_null_space(std::span<const std::uint64_t> differences,
                                                std::uint64_t columns, double least_share,
                                                Random& random);

}  // namespace demarc::probe
