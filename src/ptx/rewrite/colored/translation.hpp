// The instructions that turn a linear address into a position in the arena.
#pragma once

#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::ptx {

struct Translation {
  std::string variable = {};  // of the module, that `arithmetic` uses
  std::string declarations;   // of the registers that it uses
  std::string arithmetic;     // changes %demarc_a
  std::uint64_t granule = 0;  // bytes that follow each other whatever the colours
};

// Errors: masks, colours or remainders that do not fit together.
[[nodiscard]] Result<Translation> translation_of(const ColoredAddressing& addressing);
[[nodiscard]] Result<Translation> translation_of(const RemainderAddressing& addressing,
                                                 const Module& module);
[[nodiscard]] Result<Translation> translation_of(RemainderShape shape, const Module& module);

}  // namespace demarc::ptx
