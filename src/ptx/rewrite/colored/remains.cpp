// Removes refused kernels, functions that nothing runs, and variables that have moved.
#include "rewrite/colored/remains.hpp"

#include "demarc/ptx/initialiser.hpp"
#include "demarc/ptx/parser.hpp"
#include "demarc/ptx/printer.hpp"
#include "parse/cursor.hpp"
#include "rewrite/colored/system_calls.hpp"
#include "rewrite/kernel_text.hpp"

namespace demarc::ptx {
namespace {

// In place of vprintf.
constexpr std::string_view silent_print = "demarc_print_nothing";

// A declaration stays as long as what it declares; of the driver's functions, those that remain in
// use.
bool stays(const Function& function, std::uint32_t index, const std::set<std::uint32_t>& functions,
           ColoredPrinting printing) {
  if (function.has_body) return functions.contains(index);
  if (function.definition != no_index) return functions.contains(function.definition);
  return function.name == "__assertfail" ||
         (function.name == "vprintf" && printing == ColoredPrinting::silenced);
}

bool names_others(const Module& module, const Variable& variable) {
  const auto image = initial_image(module, variable);
  return !image || !image->relocations.empty();
}

void add_used_constants(const Module& module, const std::set<std::uint32_t>& functions,
                        std::set<std::uint32_t>& variables) {
  for (const std::uint32_t function : functions) {
    for (const Operand& operand : module.functions[function].body.operands) {
      const bool names =
          operand.kind == OperandKind::symbol || operand.kind == OperandKind::address;
      if (!names || operand.base != Base::global) continue;
      if (module.variables[operand.index].space == StateSpace::constant) {
        variables.insert(operand.index);
      }
    }
  }
}

// What a variable that stays holds the address of stays as well.
void add_held(const Module& module, std::set<std::uint32_t>& variables) {
  std::vector<std::uint32_t> work(variables.begin(), variables.end());
  while (!work.empty()) {
    const auto image = initial_image(module, module.variables[work.back()]);
    work.pop_back();
    if (!image) continue;
    for (const Relocation& relocation : image->relocations) {
      for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
        if (module.variables[i].name != relocation.symbol) continue;
        if (variables.insert(i).second) work.push_back(i);
      }
    }
  }
}

// `.alias other, original;` where one of the two is gone.
bool is_alias_of_none(std::string_view directive, const std::set<std::string_view>& names) {
  constexpr std::string_view word = ".alias";
  if (!directive.starts_with(word)) return false;
  Cursor cursor(directive.substr(word.size()));
  cursor.skip();
  const bool has_first = names.contains(cursor.name());
  if (!cursor.take(',')) return false;
  cursor.skip();
  return !has_first || !names.contains(cursor.name());
}

}  // namespace

void silence_printing(const Module& module, std::vector<Splice>& splices) {
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body.instructions) {
      if (instruction.opcode != Opcode::call ||
          system_call_of(module, function.body, instruction) != SystemCall::printing) {
        continue;
      }
      const std::string_view written = module.text_of(instruction);
      std::string changed(written);
      replace_in(changed, "vprintf", silent_print);
      splices.push_back({instruction.text_offset, written.size(), std::move(changed)});
    }
  }
  for (const Function& function : module.functions) {
    if (function.name != "vprintf" || function.has_body || function.results.empty()) continue;
    const auto name = static_cast<std::size_t>(function.name.data() - module.text->data());
    constexpr std::string_view linkage = ".extern";
    const std::size_t begin = module.text->rfind(linkage, name);
    const std::size_t end = module.text->find(';', name);
    if (begin == std::string::npos || end == std::string::npos) continue;
    splices.push_back({begin, linkage.size(), ""});
    splices.push_back({name, function.name.size(), std::string(silent_print)});
    splices.push_back(
        {end, 1,
         fmt::format("{{\n\tst.param.b32 \t[{}], 0;\n\tret;\n}}", function.results[0].name)});
    return;
  }
}

Remains remains_of(const Module& module, const std::set<std::uint32_t>& functions,
                   std::set<std::uint32_t> variables, ColoredPrinting printing) {
  Remains remains;
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    if (stays(module.functions[i], i, functions, printing)) remains.functions.insert(i);
  }
  // The host may write to constants by their names.
  for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
    const Variable& variable = module.variables[i];
    const bool may_go = variable.space == StateSpace::global ||
                        (variable.space == StateSpace::constant && names_others(module, variable));
    if (!may_go) variables.insert(i);
  }
  add_used_constants(module, functions, variables);
  add_held(module, variables);
  std::set<std::string_view> names;
  for (const std::uint32_t variable : variables) names.insert(module.variables[variable].name);
  for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
    if (names.contains(module.variables[i].name)) remains.variables.insert(i);
  }
  return remains;
}

Result<Module> without_the_rest(Module module, const Remains& remains) {
  const std::size_t before = module.items.size();
  std::set<std::string_view> names;
  for (const std::uint32_t function : remains.functions) {
    names.insert(module.functions[function].name);
  }
  std::erase_if(module.items, [&](const Item& item) {
    if (item.kind == ItemKind::verbatim) {
      return is_alias_of_none(module.verbatim[item.index], names);
    }
    if (item.kind == ItemKind::function) return !remains.functions.contains(item.index);
    return item.kind == ItemKind::variable && !remains.variables.contains(item.index);
  });
  if (module.items.size() == before) return module;
  return parse_whole(print(module), module.source_name);
}

}  // namespace demarc::ptx
