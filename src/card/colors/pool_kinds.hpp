// The kinds of colours that pools have. To add one, write its class and let find_colors() choose
// it.
#pragma once

#include <memory>

#include "demarc/card/pool_colors.hpp"
#include "demarc/card/remainder_colors.hpp"

namespace demarc::cuda {

[[nodiscard]] Result<std::unique_ptr<PoolColors>> find_parities(
    const GpuPointer& gpu, std::span<const std::uint64_t> masks, PageArena& arena);
[[nodiscard]] Result<std::unique_ptr<PoolColors>> find_remainders(const CardPointer& card,
                                                                  const color::ColorScheme& scheme,
                                                                  PageArena& arena);

}  // namespace demarc::cuda
