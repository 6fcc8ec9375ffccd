// Memory of a card whose colours are remainders (an H200): a share of a coloured pool, which
// kernels reach by rewritten accesses (ptx/colored.hpp).
#pragma once

#include <memory>

#include "demarc/cuda/colored_memory.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

// Colour c of `pool` is its share c.
[[nodiscard]] Result<std::shared_ptr<MemorySource>> make_remainder_memory(
    std::shared_ptr<cuda::ColoredPool> pool, std::uint32_t color);

}  // namespace demarc::study
