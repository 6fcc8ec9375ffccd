// Answers questions about how an instruction is written.
#include "lower/instruction_view.hpp"

#include <algorithm>

namespace demarc::emulate {

bool InstructionView::has(std::string_view modifier) const {
  return std::any_of(words_.modifiers.begin(), words_.modifiers.end(),
                     [&](const ptx::ModifierUse& use) { return use.text == modifier; });
}

bool InstructionView::has_any(std::initializer_list<std::string_view> modifiers) const {
  return std::any_of(modifiers.begin(), modifiers.end(),
                     [&](std::string_view modifier) { return has(modifier); });
}

std::span<const ptx::Operand> InstructionView::elements(const ptx::Operand& operand) const {
  return operand.kind == ptx::OperandKind::vector ? children(operand) : std::span(&operand, 1);
}

const ptx::Operand& InstructionView::sole(const ptx::Operand& operand) const {
  const auto parts = elements(operand);
  return parts.size() == 1 ? parts[0] : operand;
}

std::span<const ptx::Operand> InstructionView::results() const {
  const ptx::Operand& first = operands_[0];
  return first.kind == ptx::OperandKind::pair ? children(first) : std::span(&first, 1);
}

}  // namespace demarc::emulate
