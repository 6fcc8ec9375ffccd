// Symbols of machine code by what ptxas notes in them.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::fatbin {

// Bits of st_other, whatever the symbol's type: ptxas sets them for these alone.
enum class SymbolBit : unsigned char { managed = 0x4, kernel = 0x10 };

// Calls `use` with the name of each symbol of a cubin that has all of these bits in st_other; 0: of
// every symbol. An error where it has no table of them, or an ABI that is not known.
using UseSymbol = std::function<void(std::string_view symbol)>;
[[nodiscard]] Result<void> for_each_symbol(unsigned char bits, std::string_view cubin,
                                           std::string_view name, const UseSymbol& use);

// Adds the names of those of a cubin that have the bit.
[[nodiscard]] Result<void> add_symbols_with(SymbolBit bit, std::string_view cubin,
                                            std::string_view name, std::set<std::string>& names);

}  // namespace demarc::fatbin
