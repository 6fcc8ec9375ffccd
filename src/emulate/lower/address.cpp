// Finds the address that a memory instruction accesses.
#include "lower/operands.hpp"

namespace demarc::emulate {

using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;

namespace {

AddressKind address_kind_of(StateSpace space) {
  switch (space) {
    case StateSpace::global:
      return AddressKind::global;
    case StateSpace::shared:
      return AddressKind::shared;
    case StateSpace::local:
      return AddressKind::local;
    case StateSpace::constant:
      return AddressKind::constant;
    case StateSpace::param:
      return AddressKind::param;
    default:
      return AddressKind::generic;
  }
}

}  // namespace

std::optional<MicroOp> Operands::address(const Operand& operand, StateSpace space) {
  if (operand.kind != OperandKind::address) return std::nullopt;
  const bool names_place = operand.base == ptx::Base::variable ||
                           operand.base == ptx::Base::parameter ||
                           operand.base == ptx::Base::result;
  MicroOp op;
  AddressKind kind = address_kind_of(space);
  if (space == StateSpace::param && names_place && !is_in_parameter_bank(operand)) {
    if (!frame_.local_offset(variable(operand))) return frame_address(operand);
    kind = AddressKind::local;
  }
  // The address of a function's parameter, which is one of local memory.
  if (space == StateSpace::param && operand.base == ptx::Base::reg && !function_.is_entry)
    kind = AddressKind::local;
  if (operand.base == ptx::Base::reg) {
    const Register& reg = frame_.reg(operand.index);
    if (reg.width != 4 && reg.width != 8) return std::nullopt;
    op.a = reg.slot.offset;
    op.uniform = uniform_bits(value_of(reg));
    op.flags = reg.width == 4 ? memory_narrow_address : std::uint8_t{0};
    op.imm = operand.value;
  } else if (operand.base == ptx::Base::none) {
    op.a = frame_.constant(ptx::Type::u64, operand.value).slot.offset;
    op.uniform = uniform_a;
  } else {
    const Source start = symbol(operand);
    if (code_.failed()) return std::nullopt;
    op.a = start.slot.offset;
    op.uniform = uniform_a;
    // A named variable without a space is in its own.
    const bool names_variable =
        operand.base == ptx::Base::global || operand.base == ptx::Base::variable;
    if (kind == AddressKind::generic && names_variable)
      kind = address_kind_of(variable(operand).space);
  }
  op.kind = static_cast<std::uint8_t>(kind);
  op.join = kernel_.program.memory_sites++;
  return op;
}

MicroOp Operands::at_slot(std::uint32_t slot, StateSpace space) {
  MicroOp op;
  op.kind = static_cast<std::uint8_t>(address_kind_of(space));
  op.a = slot;
  op.join = kernel_.program.memory_sites++;
  return op;
}

// For a parameter or result of a function, or of a variable that is handed to one.
std::optional<MicroOp> Operands::frame_address(const Operand& operand) {
  const auto place = in_frame(operand);
  if (!place || operand.offset() < 0 || operand.value >= place->bytes) return std::nullopt;
  MicroOp op;
  op.kind = static_cast<std::uint8_t>(AddressKind::frame);
  op.a = frame_.constant(ptx::Type::u64, 0).slot.offset;
  op.uniform = uniform_a;
  op.imm = operand.value;
  op.c = place->offset;
  op.join = place->bytes;
  return op;
}

std::optional<FrameVariable> Operands::in_frame(const Operand& operand) const {
  const CodeFunction& code = kernel_.program.functions[index_];
  switch (operand.base) {
    case ptx::Base::variable:
      return frame_.parameter_variable(function_.body.variables[operand.index]);
    case ptx::Base::result:
      return code.results[operand.index];
    default:
      return code.parameters[operand.index];
  }
}

}  // namespace demarc::emulate
