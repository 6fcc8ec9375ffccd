// What the rewriting needs of a colouring by remainders.
#pragma once

#include "demarc/gpu/remainder_coloring.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::test {

inline ptx::RemainderAddressing addressing_of(const gpu::RemainderColoring& coloring,
                                              std::uint32_t color, std::uint64_t arena,
                                              std::uint64_t table) {
  const gpu::RemainderSteps steps = coloring.steps(color).value();
  return {arena,       table,     table + steps.pages_at, steps.chunk_shift,      steps.page_shift,
          steps.begin, steps.end, steps.reciprocal,       steps.reciprocal_shift, steps.skipped};
}

}  // namespace demarc::test
