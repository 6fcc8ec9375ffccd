// Looks through the instructions that a kernel may run for names of variables.
#include "demarc/ptx/named_variables.hpp"

#include <set>

#include "rewrite/colored/reach.hpp"

namespace demarc::ptx {
namespace {

void add_named(const Body& body, const Operand& operand, std::set<std::uint32_t>& out) {
  if (operand.base == Base::global) out.insert(operand.index);
  if (!operand.has_children()) return;
  for (const Operand& child : body.children(operand)) add_named(body, child, out);
}

}  // namespace

std::vector<const Variable*> named_variables(const Module& module, const Function& kernel) {
  std::set<std::uint32_t> named;
  const auto index = static_cast<std::uint32_t>(&kernel - module.functions.data());
  for (const std::uint32_t function : Reach(module).from(index)) {
    const Body& body = module.functions[function].body;
    for (const Instruction& instruction : body.instructions) {
      for (const Operand& operand : body.operands_of(instruction)) add_named(body, operand, named);
    }
  }
  std::vector<const Variable*> variables;
  variables.reserve(named.size());
  for (const std::uint32_t one : named) variables.push_back(&module.variables[one]);
  return variables;
}

}  // namespace demarc::ptx
