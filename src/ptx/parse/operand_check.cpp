// Finds more or fewer operands than the modifiers ask for, and vectors of another width.
#include "parse/operand_check.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace demarc::ptx {
namespace {

// How many operands the modifiers ask for; 0 where the table of opcodes says all there is.
std::size_t wanted_operands(const Mnemonic& mnemonic, const FormLimits& limits) {
  const std::size_t hint = mnemonic.has(Modifier::L2_cache_hint) ? 1 : 0;
  const bool combines =
      mnemonic.has(Modifier::and_) || mnemonic.has(Modifier::or_) || mnemonic.has(Modifier::xor_);
  const bool packs = info(mnemonic.type(0)).text.ends_with("x2") && mnemonic.type(1) == Type::f32;
  switch (mnemonic.opcode) {
    case Opcode::setp:
    case Opcode::set:
      return combines ? 4 : 3;
    case Opcode::min:
    case Opcode::max:  // of three numbers, from sm_100 on
      return mnemonic.type() == Type::f32 && (limits.target == 0 || limits.target >= 100) ? 0 : 3;
    case Opcode::lop3:
      return combines ? 6 : 5;
    case Opcode::cvt_pack:
      return 1 + mnemonic.types.size();
    case Opcode::cvt:  // two numbers into a packed type, random bits for rounding
      return (packs ? 3U : 2U) + (mnemonic.has(Modifier::rs) ? 1U : 0U);
    case Opcode::atom:
      return (mnemonic.has(Modifier::cas) ? 4 : 3) + hint;
    case Opcode::ld:
    case Opcode::st:
    case Opcode::red:
      return 2 + hint;
    default:
      return 0;
  }
}

}  // namespace

bool OperandCheck::check(const Instruction& instruction, const Mnemonic& mnemonic) {
  const auto operands = body_.operands_of(instruction);
  const std::size_t wanted = wanted_operands(mnemonic, form_limits_);
  if (wanted != 0 && operands.size() != wanted) {
    return fail_at(instruction.text_offset,
                   fmt::format("'{}' takes {} operands with these modifiers, found {}",
                               excerpt(mnemonic.text, 60), wanted, operands.size()));
  }
  if (!check_rules(instruction, mnemonic)) return false;
  const bool stores = mnemonic.opcode == Opcode::st;
  const bool moves = mnemonic.opcode == Opcode::mov;
  if (!stores && !moves && mnemonic.opcode != Opcode::ld && mnemonic.opcode != Opcode::ldu) {
    return true;
  }
  std::size_t width = elements_of(operands[stores ? 1 : 0]);
  if (moves) {  // between a vector and what it makes up, or of an element into all
    const bool is_special = operands[1].kind == OperandKind::special;
    const std::size_t from = is_special ? 1 : elements_of(operands[1]);
    if (mnemonic.vector_width == 1 && (width == 1 || from == 1)) return true;
    if (from != 1 || operands[1].kind == OperandKind::vector) width = std::min(width, from);
  }
  if (width == mnemonic.vector_width) return true;
  return fail_at(
      instruction.text_offset,
      fmt::format("'{}' moves {} element{}, but its operand has {}", excerpt(mnemonic.text, 60),
                  mnemonic.vector_width, mnemonic.vector_width == 1 ? "" : "s", width));
}

std::size_t OperandCheck::elements_of(const Operand& operand) const {
  if (operand.kind == OperandKind::vector) return operand.index;
  if (operand.kind != OperandKind::reg || operand.selector != Selector::none) return 1;
  return body_.range_of(operand.index).vector_width;
}

}  // namespace demarc::ptx
