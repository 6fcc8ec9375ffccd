// The values of an initialised variable.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// An address that the loader fills in: (symbol + addend) >> shift, `bytes` wide, at `offset`.
struct Relocation {
  std::uint64_t offset = 0;  // bytes from the start of the variable
  std::uint32_t bytes = 0;
  std::uint32_t shift = 0;  // bits; of the form 0xFF00(symbol)
  bool is_generic = false;  // generic(symbol): the generic address
  std::string_view symbol;
  std::int64_t addend = 0;
};

struct InitialImage {
  std::vector<std::uint8_t> bytes;  // of the whole variable; bytes without a given value are zeros
  std::vector<Relocation> relocations;
};

// The image is empty for a variable without initialiser. An error names file, line and text.
[[nodiscard]] Result<InitialImage> initial_image(const Module& module, const Variable& variable);

}  // namespace demarc::ptx
