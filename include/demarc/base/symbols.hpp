// The names that compilers make from C++ names, and the way back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc {

// "void scale<float>(float*, int)" for "_Z5scaleIfEvPT_i"; `symbol` itself if it is not such a
// name.
[[nodiscard]] std::string demangled(const std::string& symbol);

// What kind of symbols they are, in messages.
struct SymbolKind {
  std::string_view one;   // "kernel"
  std::string_view many;  // "kernels"
};

// Index of the symbol that `name` means. `name` is the symbol as it is, or as C++ writes it.
// Arguments, and arguments of a template, may be left out if only one symbol fits then. An error
// names the nearest symbols.
[[nodiscard]] Result<std::size_t> find_symbol(std::span<const std::string> symbols,
                                              std::string_view name, const SymbolKind& kind);

// "a, b(int)": as C++ writes them, without what they return.
[[nodiscard]] std::string symbol_list(std::span<const std::string> symbols);

}  // namespace demarc
