// Finds __managed__ variables: `.attribute(.managed)` in PTX, a bit of the symbol in machine code.
#include "demarc/fatbin/managed.hpp"

#include <set>

#include "code.hpp"
#include "demarc/ptx/parser.hpp"
#include "symbols.hpp"

namespace demarc::fatbin {
namespace {

using Names = std::set<std::string>;

bool is_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$';
}

// Whether `.attribute(.managed, .unified(1, 2))` has the attribute, and not one that begins so.
bool says_managed(std::string_view attributes) {
  constexpr std::string_view word = "managed";
  for (auto at = attributes.find(word); at != std::string_view::npos;
       at = attributes.find(word, at + 1)) {
    const auto behind = at + word.size();
    if ((at == 0 || !is_name(attributes[at - 1])) &&
        (behind == attributes.size() || !is_name(attributes[behind])))
      return true;
  }
  return false;
}

void add_of_ptx(const ptx::Module& module, Names& names) {
  const auto add = [&](const std::vector<ptx::Variable>& variables) {
    for (const ptx::Variable& variable : variables) {
      if (says_managed(variable.attributes)) names.emplace(variable.name);
    }
  };
  add(module.variables);
  for (const ptx::Function& function : module.functions) add(function.body.variables);
}

Result<void> add_of_ptx(std::string_view text, std::string_view name, Names& names) {
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(std::string(text), std::string(name)));
  add_of_ptx(module, names);
  return {};
}

}  // namespace

std::vector<std::string> managed_variables(const ptx::Module& module) {
  Names names;
  add_of_ptx(module, names);
  return {names.begin(), names.end()};
}

Result<std::vector<std::string>> managed_variables(const Image& image, std::string_view name) {
  Names names;
  DEMARC_CHECK(for_each_code(
      image, name, "managed variables",
      [&](std::string_view text, std::string_view where) { return add_of_ptx(text, where, names); },
      [&](std::string_view bytes, std::string_view where) {
        return add_symbols_with(SymbolBit::managed, bytes, where, names);
      }));
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace demarc::fatbin
