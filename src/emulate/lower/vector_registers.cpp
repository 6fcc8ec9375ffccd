// Numbers the elements of vector registers.
#include "lower/vector_registers.hpp"

#include <algorithm>

namespace demarc::emulate {

using ptx::OperandKind;

namespace {

bool has_vector_registers(const ptx::Function& function) {
  return std::any_of(function.body.registers.begin(), function.body.registers.end(),
                     [](const ptx::RegisterRange& range) { return range.vector_width > 1; });
}

struct NumberedElements {
  std::uint32_t first = 0;
  std::uint8_t width = 1;
};

// Each register's elements, by its number; the declarations are then of these.
std::vector<NumberedElements> number_elements(ptx::Body& body) {
  std::vector<NumberedElements> out;
  std::uint32_t next = 0;
  for (ptx::RegisterRange& range : body.registers) {
    const std::uint32_t registers = range.count;
    range.first = next;
    range.count = registers * range.vector_width;
    for (std::uint32_t i = 0; i < registers; ++i, next += range.vector_width)
      out.push_back({next, range.vector_width});
    range.vector_width = 1;
  }
  body.register_count = next;
  return out;
}

bool selects_element(ptx::Selector selector) {
  return selector >= ptx::Selector::x && selector <= ptx::Selector::w;
}

void name_elements(ptx::Body& body) {
  const std::vector<NumberedElements> elements = number_elements(body);
  for (ptx::Instruction& instruction : body.instructions) {
    if (instruction.predicate != ptx::no_index)
      instruction.predicate = elements[instruction.predicate].first;
  }
  const std::size_t written = body.operands.size();
  for (std::size_t i = 0; i < written; ++i) {
    ptx::Operand operand = body.operands[i];
    const bool is_register =
        operand.kind == OperandKind::reg ||
        (operand.kind == OperandKind::address && operand.base == ptx::Base::reg);
    if (!is_register) continue;
    const auto [first, width] = elements[operand.index];
    operand.index = first;
    if (width > 1 && selects_element(operand.selector)) {
      operand.index += static_cast<std::uint32_t>(operand.selector) -
                       static_cast<std::uint32_t>(ptx::Selector::x);
      operand.selector = ptx::Selector::none;
    } else if (width > 1) {
      for (std::uint32_t element = 0; element < width; ++element) {
        ptx::Operand child = operand;
        child.index = first + element;
        body.operands.push_back(child);
      }
      operand.kind = OperandKind::vector;
      operand.index = width;
      operand.value = body.operands.size() - width;
    }
    body.operands[i] = operand;
  }
}

}  // namespace

std::optional<ptx::Module> without_vector_registers(const ptx::Module& module) {
  if (std::none_of(module.functions.begin(), module.functions.end(), has_vector_registers))
    return std::nullopt;
  ptx::Module out = module;
  for (ptx::Function& function : out.functions) {
    if (has_vector_registers(function)) name_elements(function.body);
  }
  return out;
}

}  // namespace demarc::emulate
