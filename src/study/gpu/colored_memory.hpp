// Memory of one share of a coloured pool, which kernels reach by rewritten accesses.
#pragma once

#include <memory>

#include "demarc/guest/colored_code.hpp"
#include "gpu/memory_source.hpp"

namespace demarc::study {

[[nodiscard]] Result<std::shared_ptr<MemorySource>> make_colored_memory(
    std::shared_ptr<cuda::ColoredPool> pool, std::uint32_t share);

}  // namespace demarc::study
