// The code that keeps to a share of a pool of this process.
#pragma once

#include <cstddef>

#include "demarc/base/result.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/guest/colored_code.hpp"

namespace demarc::cuda {

// The pool must have one region (PoolPages::one_region), because then positions alone decide
// colours.
[[nodiscard]] Result<ColoredCode> code_of_pool(const ColoredPool& pool, std::size_t share);

}  // namespace demarc::cuda
