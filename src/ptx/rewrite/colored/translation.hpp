// The instructions that turn a linear address into a position in the arena.
#pragma once

#include <cstdint>
#include <string>

#include "demarc/base/result.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::ptx {

struct Translation {
  std::string prologue = {};      // of each function that has translated accesses
  std::string declarations = {};  // of the registers that `arithmetic` uses
  std::string arithmetic = {};    // changes %demarc_a
  std::uint64_t granule = 0;      // bytes that follow each other whatever the colours
  // Bytes that the prologue reads in the module's constant variable, behind the ColoredPlaces.
  std::size_t constant_bytes = 0;
};

// Errors: masks, colours or remainders that do not fit together.
[[nodiscard]] Result<Translation> translation_of(const ColoredAddressing& addressing);
[[nodiscard]] Result<Translation> translation_of(const RemainderAddressing& addressing,
                                                 const Module& module);
[[nodiscard]] Result<Translation> translation_of(RemainderShape shape, const Module& module);

}  // namespace demarc::ptx
