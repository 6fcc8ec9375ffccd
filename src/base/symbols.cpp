// Finds symbols by the names that people write.
#include "demarc/base/symbols.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "demarc/base/near_names.hpp"

namespace demarc {
namespace {

constexpr std::size_t max_listed = 6;  // symbols in a message

// `text` without its last pair of `open` and `close`, which ends it, and without what is in there.
std::string_view without_last(std::string_view text, char open, char close) {
  if (!text.ends_with(close)) return text;
  int depth = 0;
  for (std::size_t at = text.size(); at-- > 0;) {
    if (text[at] == close) ++depth;
    if (text[at] == open && --depth == 0) return text.substr(0, at);
  }
  return text;
}

// What a template returns stands before its name: of a kernel, nothing.
std::string_view without_return(std::string_view text) {
  constexpr std::string_view nothing = "void ";
  return text.starts_with(nothing) ? text.substr(nothing.size()) : text;
}

std::string as_called(const std::string& symbol) {
  return std::string(without_return(demangled(symbol)));
}

// The name as it is written, then without arguments, then without those of the template.
std::vector<std::string> ways_to_write(const std::string& symbol) {
  const std::string whole = as_called(symbol);
  if (whole == symbol) return {symbol};
  const std::string_view name = without_last(whole, '(', ')');
  return {whole, std::string(name), std::string(without_last(name, '<', '>'))};
}

std::string without_blanks(std::string_view text) {
  std::string out(text);
  out.erase(std::remove(out.begin(), out.end(), ' '), out.end());
  return out;
}

std::vector<std::string> nearest(std::span<const std::string> symbols, std::string_view name) {
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    std::size_t least = SIZE_MAX;
    for (const std::string& way : ways_to_write(symbols[i]))
      least = std::min(least, edit_distance(way, name));
    order.emplace_back(least, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::string> out;
  for (std::size_t i = 0; i < std::min(max_listed, order.size()); ++i)
    out.push_back(symbols[order[i].second]);
  return out;
}

}  // namespace

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  // Without _Z, "f" is the type float.
  if (status != 0 || !symbol.starts_with("_Z")) return symbol;
  return text.get();
}

std::string symbol_list(std::span<const std::string> symbols) {
  std::string list;
  for (const std::string& symbol : symbols) list += (list.empty() ? "" : ", ") + as_called(symbol);
  return list;
}

Result<std::size_t> find_symbol(std::span<const std::string> symbols, std::string_view name,
                                const SymbolKind& kind) {
  if (const auto exact = std::find(symbols.begin(), symbols.end(), name); exact != symbols.end())
    return static_cast<std::size_t>(exact - symbols.begin());
  const std::string wanted = without_blanks(without_return(name));
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    for (const std::string& way : ways_to_write(symbols[i])) {
      if (without_blanks(way) != wanted) continue;
      found.push_back(i);
      break;
    }
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1) {
    std::vector<std::string> meant;
    meant.reserve(found.size());
    for (const std::size_t i : found) meant.push_back(symbols[i]);
    return invalid_input("'{}' matches each of these {}; name one in full: {}", name, kind.many,
                         symbol_list(meant));
  }
  if (symbols.size() <= max_listed) {
    return invalid_input("there is no {} '{}'; its {} are: {}", kind.one, name, kind.many,
                         symbol_list(symbols));
  }
  return invalid_input("there is no {} '{}'; the nearest of its {} {} are: {}", kind.one, name,
                       symbols.size(), kind.many, symbol_list(nearest(symbols, name)));
}

}  // namespace demarc
