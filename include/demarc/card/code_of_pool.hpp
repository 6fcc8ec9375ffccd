// The code that keeps to a share of a pool of this process.
#pragma once

#include <cstddef>

#include "demarc/base/result.hpp"
#include "demarc/card/colored_memory.hpp"
#include "demarc/guest/colored_code.hpp"

namespace demarc::cuda {

[[nodiscard]] Result<ColoredCode> code_of_pool(const ColoredPool& pool, std::size_t share);

}  // namespace demarc::cuda
