// Translates one PTX instruction into an operation on rows of threads.
#include "follow/translate.hpp"

#include <cstring>

namespace demarc::locality {
namespace {

using ptx::Modifier;
using ptx::Opcode;
using ptx::OperandKind;
using ptx::TypeKind;

struct IntegerType {
  bool known = false;
  unsigned bits = 32;
  bool is_signed = false;
};

IntegerType integer_type(ptx::Type type) {
  const ptx::TypeInfo& row = ptx::info(type);
  const bool integer = row.kind == TypeKind::bits || row.kind == TypeKind::unsigned_ ||
                       row.kind == TypeKind::signed_ || row.kind == TypeKind::predicate;
  return {integer && row.bits <= 64, row.bits, row.kind == TypeKind::signed_};
}

Source3 source_of(const ptx::Operand& operand, const LeafValues& leaves) {
  Source3 source;
  if (operand.kind == OperandKind::reg && operand.selector == ptx::Selector::none &&
      !operand.negated) {
    source.kind = Source3::Kind::slot;
    source.slot = operand.index;
  } else if (operand.kind == OperandKind::special) {
    source.kind = Source3::Kind::special;
    source.special = static_cast<ptx::SpecialRegister>(operand.index);
    source.selector = operand.selector;
  } else if (operand.kind == OperandKind::immediate &&
             (operand.immediate == ptx::ImmediateKind::s64 ||
              operand.immediate == ptx::ImmediateKind::u64)) {
    source.kind = Source3::Kind::constant;
    source.value = operand.value;
  } else if (operand.kind == OperandKind::symbol) {
    if (const auto address = variable_address(operand, leaves)) {
      source.kind = Source3::Kind::constant;
      source.value = *address;
    }
  }
  return source;
}

Operation comparison_of(const ptx::Mnemonic& mnemonic, bool& is_signed) {
  switch (mnemonic.first(ptx::ModifierClass::compare)) {
    case Modifier::eq:
      return Operation::equal;
    case Modifier::ne:
      return Operation::not_equal;
    case Modifier::lt:
      return Operation::less;
    case Modifier::le:
      return Operation::less_equal;
    case Modifier::gt:
      return Operation::greater;
    case Modifier::ge:
      return Operation::greater_equal;
    case Modifier::lo:
      is_signed = false;
      return Operation::less;
    case Modifier::ls:
      is_signed = false;
      return Operation::less_equal;
    case Modifier::hi:
      is_signed = false;
      return Operation::greater;
    case Modifier::hs:
      is_signed = false;
      return Operation::greater_equal;
    default:
      return Operation::poison;
  }
}

Operation multiply_form(const ptx::Mnemonic& mnemonic, bool adds) {
  if (mnemonic.has(Modifier::wide))
    return adds ? Operation::multiply_add_wide : Operation::multiply_wide;
  if (mnemonic.has(Modifier::hi)) return adds ? Operation::poison : Operation::multiply_high;
  return adds ? Operation::multiply_add : Operation::multiply;
}

Operation plain_operation(Opcode opcode, const ptx::Mnemonic& mnemonic) {
  switch (opcode) {
    case Opcode::mov:
    case Opcode::cvta:
      return Operation::copy;
    case Opcode::add:
      return Operation::add;
    case Opcode::sub:
      return Operation::subtract;
    case Opcode::mul:
      return multiply_form(mnemonic, false);
    case Opcode::mad:
      return multiply_form(mnemonic, true);
    case Opcode::div:
      return Operation::divide;
    case Opcode::rem:
      return Operation::remainder;
    case Opcode::abs:
      return Operation::absolute;
    case Opcode::neg:
      return Operation::negate;
    case Opcode::min:
      return Operation::minimum;
    case Opcode::max:
      return Operation::maximum;
    case Opcode::bfe:
      return Operation::extract;
    case Opcode::and_:
      return Operation::bit_and;
    case Opcode::or_:
      return Operation::bit_or;
    case Opcode::xor_:
      return Operation::bit_xor;
    case Opcode::not_:
      return Operation::bit_not;
    case Opcode::shl:
      return Operation::shift_left;
    case Opcode::shr:
      return Operation::shift_right;
    case Opcode::selp:
      return Operation::select;
    case Opcode::shf:
      if (!mnemonic.has(Modifier::wrap)) return Operation::poison;
      return mnemonic.text.find(".l.") != std::string_view::npos ? Operation::funnel_left
                                                                 : Operation::funnel_right;
    default:
      return Operation::poison;
  }
}

// ld.param of the whole of a scalar, or a part.
void translate_parameter(const ptx::Operand& address, IntegerType type,
                         const std::vector<std::vector<std::byte>>& parameters,
                         SliceOperation& result) {
  if (address.index >= parameters.size()) return;
  const std::vector<std::byte>& bytes = parameters[address.index];
  const std::size_t size = type.bits / 8;
  if (address.value + size > bytes.size() || size == 0) return;
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + address.value, size);
  if (type.is_signed) value = static_cast<std::uint64_t>(sign_extended(value, type.bits));
  result.shape = {Operation::copy, 64, 64, false};
  result.sources[0].kind = Source3::Kind::constant;
  result.sources[0].value = value;
}

}  // namespace

std::optional<std::uint64_t> variable_address(const ptx::Operand& operand,
                                              const LeafValues& leaves) {
  if (operand.base != ptx::Base::global || operand.index >= leaves.variables.size() ||
      leaves.variables[operand.index] == 0)
    return std::nullopt;
  return leaves.variables[operand.index] + operand.value;
}

SliceOperation translate_instruction(const ptx::Module& module, const ptx::Function& function,
                                     const ptx::Instruction& instruction,
                                     const LeafValues& leaves) {
  SliceOperation result;
  const ptx::Mnemonic& mnemonic = module.mnemonic(instruction);
  const auto operands = function.body.operands_of(instruction);
  if (!mnemonic.understood || operands.empty() || operands[0].kind != OperandKind::reg ||
      operands[0].selector != ptx::Selector::none)
    return result;
  result.target = operands[0].index;
  IntegerType type = integer_type(mnemonic.type());
  if (instruction.opcode == Opcode::ld && operands.size() == 2 &&
      operands[1].kind == OperandKind::address && operands[1].base == ptx::Base::parameter) {
    // Moving floating bits is fine: they are only copied.
    type.bits = ptx::info(mnemonic.type()).bits;
    translate_parameter(operands[1], type, leaves.parameters, result);
    return result;
  }
  if (operands.size() < 2 || operands.size() > 4 || mnemonic.types.empty()) return result;
  OperationShape shape;
  if (instruction.opcode == Opcode::setp) {
    if (operands.size() != 3) return result;  // combined with another predicate: not followed
    if (!type.known) return result;
    shape.bits = static_cast<std::uint8_t>(type.bits);
    shape.is_signed = type.is_signed;
    shape.operation = comparison_of(mnemonic, shape.is_signed);
    shape.result_bits = 1;
  } else if (instruction.opcode == Opcode::cvt) {
    const IntegerType from = integer_type(mnemonic.type(1));
    if (mnemonic.types.size() != 2 || !type.known || !from.known || mnemonic.has(Modifier::sat))
      return result;
    shape = {Operation::convert, static_cast<std::uint8_t>(from.bits),
             static_cast<std::uint8_t>(type.bits), from.is_signed};
  } else {
    if (!type.known || mnemonic.has(Modifier::sat)) return result;
    const Operation operation = plain_operation(instruction.opcode, mnemonic);
    const bool wide =
        operation == Operation::multiply_wide || operation == Operation::multiply_add_wide;
    shape = {operation, static_cast<std::uint8_t>(type.bits),
             static_cast<std::uint8_t>(wide ? 2 * type.bits : type.bits), type.is_signed};
  }
  for (std::size_t i = 1; i < operands.size(); ++i) {
    result.sources[i - 1] = source_of(operands[i], leaves);
    if (result.sources[i - 1].kind == Source3::Kind::none) return result;
  }
  result.shape = shape;
  return result;
}

}  // namespace demarc::locality
