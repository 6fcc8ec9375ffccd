// What the rewriting needs of a colouring by remainders.
#pragma once

#include "demarc/color/remainder_coloring.hpp"
#include "demarc/color/translation.hpp"

namespace demarc::test {

inline color::RemainderAddressing addressing_of(const color::RemainderColoring& coloring,
                                                std::uint32_t color, std::uint64_t arena,
                                                std::uint64_t table) {
  const color::RemainderSteps steps = coloring.steps(color).value();
  return {
      {.chunk_shift = steps.chunk_shift,
       .page_shift = steps.page_shift,
       .pattern_bits = steps.pattern_bits,
       .shifts_quotients = steps.reciprocal_shift != 0},
      {.arena = arena - (std::uint64_t{steps.first_page} << (steps.chunk_shift + steps.page_shift)),
       .table = table,
       .pages = table + steps.pages_at,
       .before = static_cast<std::uint32_t>((arena >> steps.chunk_shift) - steps.begin),
       .end = steps.end,
       .reciprocal = steps.reciprocal,
       .reciprocal_shift = steps.reciprocal_shift,
       .skipped = steps.skipped}};
}

}  // namespace demarc::test
