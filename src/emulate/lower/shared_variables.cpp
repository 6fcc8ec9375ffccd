// Finds the shared variables that a kernel can reach, and places them.
#include "lower/shared_variables.hpp"

#include <algorithm>

#include "demarc/base/rounding.hpp"
#include "lower/function_list.hpp"

namespace demarc::emulate {

namespace {

constexpr std::uint32_t dynamic_alignment = 16;
constexpr std::uint64_t max_static_bytes = 48 * 1024;  // beyond them, memory is dynamic

}  // namespace

SharedVariables::SharedVariables(const LowerRequest& request, Refusals& refusals) {
  const ptx::Module& module = *request.module;
  std::vector<const ptx::Function*> reachable{request.kernel};
  for (std::size_t i = 0; i < reachable.size(); ++i) {
    const ptx::Body& body = reachable[i]->body;
    for (const ptx::Variable& variable : body.variables) place(variable, refusals);
    for (const ptx::Operand& operand : body.operands) {
      if (operand.kind != ptx::OperandKind::symbol && operand.kind != ptx::OperandKind::address)
        continue;
      if (operand.base == ptx::Base::global) place(module.variables[operand.index], refusals);
      if (operand.base != ptx::Base::function) continue;
      const ptx::Function* named = definition_of(module, operand.index);
      if (named != nullptr &&
          std::find(reachable.begin(), reachable.end(), named) == reachable.end()) {
        reachable.push_back(named);
      }
    }
  }
  if (dynamic_.empty() && request.dynamic_shared_bytes == 0) return;
  bytes_ = round_up(bytes_, dynamic_alignment);
  for (const ptx::Variable* variable : dynamic_) offset_[variable] = bytes_;
}

void SharedVariables::place(const ptx::Variable& variable, Refusals& refusals) {
  if (variable.space != ptx::StateSpace::shared || offset_of(variable)) return;
  if (variable.byte_size() == 0) {
    dynamic_.push_back(&variable);
    return;
  }
  const std::uint64_t start = round_up(bytes_, std::max(variable.alignment(), 1U));
  const std::uint64_t end = start + variable.byte_size();
  if (!refusals.fits(variable, {.bytes = end, .most = max_static_bytes, .memory = "static shared"}))
    return;
  offset_[&variable] = static_cast<std::uint32_t>(start);
  bytes_ = static_cast<std::uint32_t>(end);
}

std::vector<SharedPlace> SharedVariables::places(std::uint32_t dynamic_bytes) const {
  std::vector<SharedPlace> out;
  for (const auto& [variable, offset] : offset_) {
    const std::uint64_t bytes = variable->byte_size();
    out.push_back({offset, bytes != 0 ? bytes : dynamic_bytes, std::string(variable->name)});
  }
  return out;
}

std::optional<std::uint32_t> SharedVariables::offset_of(const ptx::Variable& variable) const {
  const auto at = offset_.find(&variable);
  if (at == offset_.end()) return std::nullopt;
  return at->second;
}

}  // namespace demarc::emulate
