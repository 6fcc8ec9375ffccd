// Lowers registers, immediates and the addresses of variables and functions.
#include "lower/operands.hpp"

#include "lower/immediate.hpp"
#include "lower/special.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Operand;
using ptx::OperandKind;

namespace {

constexpr std::uint8_t any_sink_width = 8;

// A register has the width of the type. Constants and addresses may be wider: their low bytes
// count.
bool is_of_type(const Operand& operand, const Source& value, ptx::Type type) {
  const std::uint8_t width = width_of(type);
  if (value.width == width) return true;
  const bool is_wider = width > 0 && value.width > width;
  return operand.kind != OperandKind::reg && value.uniform && is_wider;
}

}  // namespace

Source Operands::source(const Operand& operand, ptx::Type type) {
  const Source value = any_source(operand, type);
  if (!is_of_type(operand, value, type)) code_.fail();
  return value;
}

Source Operands::any_source(const Operand& operand, ptx::Type type) {
  switch (operand.kind) {
    case OperandKind::reg: {
      Source value = value_of(frame_.reg(operand.index));
      value.negated = operand.negated;
      return value;
    }
    case OperandKind::immediate: {
      Source value = frame_.constant(type, immediate_bits(operand, type));
      value.negated = type == ptx::Type::pred && operand.negated;
      return value;
    }
    case OperandKind::special:
      return special(operand);
    case OperandKind::symbol:
      return symbol(operand);
    default:
      code_.fail();
      return {};
  }
}

std::vector<Source> Operands::sources(std::span<const Operand> operands, ptx::Type type) {
  std::vector<Source> out;
  for (const Operand& operand : operands) out.push_back(source(operand, type));
  return out;
}

Register Operands::destination(const Operand& operand, ptx::Type type) {
  const std::uint8_t width = width_of(type);
  if (operand.kind == OperandKind::sink)
    return width == 0 ? frame_.predicate() : frame_.vector(width);
  const Register reg = any_destination(operand);
  if (reg.width != width) code_.fail();
  return reg;
}

Register Operands::any_destination(const Operand& operand) {
  if (operand.kind == OperandKind::reg) return frame_.reg(operand.index);
  if (operand.kind == OperandKind::sink) return frame_.vector(any_sink_width);
  code_.fail();
  return {};
}

Source Operands::guard(const InstructionView& instruction) const {
  Source value = value_of(frame_.reg(instruction.written().predicate));
  value.negated = instruction.written().predicate_negated;
  return value;
}

Source Operands::special(const Operand& operand) {
  const auto value = special_source(kernel_, operand, frame_, code_);
  if (!value) code_.fail();
  return value.value_or(Source{});
}

// The address of a thing in its own state space.
Source Operands::symbol(const Operand& operand) {
  std::optional<Source> value;
  switch (operand.base) {
    case ptx::Base::global:
    case ptx::Base::variable:
      value = variable_address(variable(operand), operand.value);
      break;
    case ptx::Base::parameter:
      if (is_in_parameter_bank(operand)) {
        value = frame_.constant(ptx::Type::u64,
                                kernel_.request.parameter_offsets[operand.index] + operand.value);
        break;
      }
      [[fallthrough]];
    case ptx::Base::result:
      value = variable_address(variable(operand), operand.value);
      break;
    case ptx::Base::function:
      value = function_address(operand);
      break;
    default:
      break;
  }
  if (!value) code_.fail();
  return value.value_or(Source{});
}

std::optional<Source> Operands::variable_address(const ptx::Variable& variable,
                                                 std::uint64_t offset) {
  const auto constant = [&](std::uint64_t start) {
    return frame_.constant(ptx::Type::u64, start + offset);
  };
  if (const auto start = kernel_.shared.offset_of(variable)) return constant(*start);
  if (const auto start = frame_.local_offset(variable)) {
    const Register d = frame_.uniform(sizeof(std::uint64_t));
    MicroOp& op = code_.emit(control::local_address);
    op.d = d.slot.offset;
    op.imm = *start + offset;
    return value_of(d);
  }
  const ModuleMemory& memory = *kernel_.request.memory;
  for (const auto* starts : {&memory.global_address, &memory.constant_offset}) {
    if (const auto at = starts->find(&variable); at != starts->end()) return constant(at->second);
  }
  return std::nullopt;
}

std::optional<Source> Operands::function_address(const Operand& operand) {
  const ptx::Function* definition = definition_of(kernel_.module(), operand.index);
  if (definition == nullptr) return std::nullopt;
  const std::uint64_t start = address_of_function(kernel_.module(), *definition);
  kernel_.program.function_of_address[start] = kernel_.functions.index_of(*definition);
  return frame_.constant(ptx::Type::u64, start + operand.value);
}

const ptx::Variable& Operands::variable(const Operand& operand) const {
  switch (operand.base) {
    case ptx::Base::global:
      return kernel_.module().variables[operand.index];
    case ptx::Base::parameter:
      return function_.parameters[operand.index];
    case ptx::Base::result:
      return function_.results[operand.index];
    default:
      return function_.body.variables[operand.index];
  }
}

// Those of a kernel lie in memory of their own, those of other functions in the frame.
bool Operands::is_in_parameter_bank(const Operand& operand) const {
  return operand.base == ptx::Base::parameter && function_.is_entry;
}

}  // namespace demarc::emulate
