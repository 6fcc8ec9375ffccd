// Symbols of machine code by what ptxas notes in them.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

// Bits of st_other, whatever the symbol's type: ptxas sets them for these alone.
enum class SymbolBit : unsigned char { managed = 0x4, kernel = 0x10 };

// Adds the names of those of a cubin that have the bit. An error where it has no table of them, or
// an ABI that is not known.
[[nodiscard]] Result<void> add_symbols_with(SymbolBit bit, std::string_view cubin,
                                            std::string_view name, std::set<std::string>& names);

}  // namespace demarc::fatbin
