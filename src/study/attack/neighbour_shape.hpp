// Sizes that a neighbour's kernel and its launch have in common.
#pragma once

#include <cstdint>

#include "demarc/study/neighbour.hpp"

namespace demarc::study {

inline constexpr std::uint32_t bulk_bytes = 1024;    // of one bulk copy; there is one per warp
inline constexpr std::uint32_t barrier_bytes = 256;  // of shared memory: 8 for each warp of a block

// Whether it works on a buffer of its launch, and not on memory of its module or of its threads.
[[nodiscard]] bool works_on_buffer(Operation operation);

}  // namespace demarc::study
