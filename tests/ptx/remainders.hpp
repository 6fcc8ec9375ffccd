// The half of an H200's colours that 23 of 47 remainders are.
#pragma once

#include "demarc/color/translation.hpp"

namespace demarc::ptx::test {

inline color::RemainderAddressing remainders(std::uint64_t arena, std::uint64_t table) {
  constexpr std::uint32_t begin = 8 * 23 * 24;
  return {{.chunk_shift = 8, .page_shift = 13, .pattern_bits = 9},
          {.arena = arena,
           .table = table,
           .pages = table + 1024,
           .before = static_cast<std::uint32_t>((arena >> 8U) - begin),
           .end = begin + 260000,
           .reciprocal = 23342214,  // of 8 * 23
           .skipped = 8 * 24}};
}

}  // namespace demarc::ptx::test
