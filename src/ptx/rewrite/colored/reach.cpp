// Follows the call graph of a module.
#include "rewrite/colored/reach.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "demarc/ptx/initialiser.hpp"

namespace demarc::ptx {
namespace {

using Functions = std::set<std::uint32_t>;

// The definitions that variables hold the addresses of, by index in Module::variables: directly, or
// by holding the address of a variable that does. Initialisers that cannot be read give none:
// a function that uses such a variable is refused.
std::vector<Functions> held_by_variables(const Module& module) {
  std::multimap<std::string_view, std::uint32_t> variables;
  std::map<std::string_view, std::uint32_t> functions;
  for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
    variables.emplace(module.variables[i].name, i);
  }
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    if (module.functions[i].has_body) functions.emplace(module.functions[i].name, i);
  }
  std::vector<std::vector<Relocation>> addresses;
  for (const Variable& variable : module.variables) {
    auto image = initial_image(module, variable);
    addresses.push_back(image ? std::move(image->relocations) : std::vector<Relocation>());
  }
  std::vector<Functions> held(module.variables.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t i = 0; i < module.variables.size(); ++i) {
      const std::size_t before = held[i].size();
      for (const Relocation& relocation : addresses[i]) {
        const auto function = functions.find(relocation.symbol);
        if (function != functions.end()) held[i].insert(function->second);
        const auto [first, last] = variables.equal_range(relocation.symbol);
        for (auto at = first; at != last; ++at) {
          const Functions more = held[at->second];
          held[i].insert(more.begin(), more.end());
        }
      }
      changed = changed || held[i].size() != before;
    }
  }
  return held;
}

class Names {
 public:
  explicit Names(const Module& module) : module_(module), held_(held_by_variables(module)) {}

  // Adds the definition of that function.
  void add(std::uint32_t function, Functions& out) const {
    const std::uint32_t definition = module_.functions[function].definition;
    if (definition != no_index) out.insert(definition);
  }
  // Adds the definitions that `operand` leads to.
  void add(const Body& body, const Operand& operand, Functions& out) const {
    if (operand.base == Base::function) {
      add(operand.index, out);
    } else if (operand.base == Base::global) {
      out.insert(held_[operand.index].begin(), held_[operand.index].end());
    }
    if (!operand.has_children()) return;
    for (const Operand& child : body.children(operand)) add(body, child, out);
  }

  [[nodiscard]] Functions in_initialisers() const {
    Functions all;
    for (const Functions& held : held_) all.insert(held.begin(), held.end());
    return all;
  }

 private:
  const Module& module_;
  std::vector<Functions> held_;
};

bool calls_by_address(const Body& body, const Instruction& instruction) {
  for (const Operand& operand : body.operands_of(instruction)) {
    if (operand.kind == OperandKind::list) continue;
    return operand.base != Base::function;
  }
  return true;
}

}  // namespace

Reach::Reach(const Module& module) : callees_(module.functions.size()) {
  const Names names(module);
  Functions taken = names.in_initialisers();
  std::vector<Functions> direct(module.functions.size());
  std::vector<bool> indirect(module.functions.size(), false);
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    const Body& body = module.functions[i].body;
    for (const TargetSet& set : body.targets) {
      if (set.kind != TargetSet::Kind::call_targets) continue;
      for (const std::uint32_t target : set.targets) names.add(target, direct[i]);
    }
    for (const Instruction& instruction : body.instructions) {
      const bool call = instruction.opcode == Opcode::call;
      if (call && calls_by_address(body, instruction)) indirect[i] = true;
      for (const Operand& operand : body.operands_of(instruction)) {
        names.add(body, operand, direct[i]);
        if (!call) names.add(body, operand, taken);
      }
    }
  }
  for (std::uint32_t i = 0; i < module.functions.size(); ++i) {
    if (indirect[i]) direct[i].insert(taken.begin(), taken.end());
    callees_[i].assign(direct[i].begin(), direct[i].end());
  }
}

std::vector<std::uint32_t> Reach::from(std::uint32_t function) const {
  Functions seen{function};
  std::vector<std::uint32_t> work{function};
  while (!work.empty()) {
    const std::uint32_t at = work.back();
    work.pop_back();
    for (const std::uint32_t callee : callees_[at]) {
      if (seen.insert(callee).second) work.push_back(callee);
    }
  }
  return {seen.begin(), seen.end()};
}

}  // namespace demarc::ptx
