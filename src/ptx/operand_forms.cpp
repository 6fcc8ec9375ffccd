// Finds operands that do not go with their mnemonic: constants of another kind than the type,
// vectors of another width, more or fewer operands than the modifiers ask for.
#include <fmt/format.h>

#include <algorithm>

#include "parse_state.hpp"

namespace demarc::ptx {
namespace {

// Integers stand for integers and untyped bits, and no constant for numbers below 32 bits or
// packed.
bool takes_constant(Type type, ImmediateKind kind) {
  const bool is_single = kind == ImmediateKind::f32;
  const bool is_double = kind == ImmediateKind::f64;
  switch (type) {
    case Type::f32:
    case Type::f64:
      return is_single || is_double;
    case Type::b32:
      return !is_double;
    case Type::b64:
      return !is_single;
    case Type::f16:
    case Type::bf16:
    case Type::f16x2:
    case Type::bf16x2:
      return false;
    default:
      return !is_single && !is_double;
  }
}

// The operands that have the type: first and behind the last; and that type.
struct Typed {
  std::size_t first = 0;
  std::size_t end = 0;
  Type type = Type::none;
};

Typed typed_operands(const Mnemonic& mnemonic, std::size_t count) {
  const OpcodeInfo& row = info(mnemonic.opcode);
  const Type last = mnemonic.types.empty() ? Type::none : mnemonic.types.back();
  switch (row.group) {
    case OpcodeGroup::compare:
      if (mnemonic.opcode == Opcode::slct) return {1, 3, mnemonic.type(0)};
      return {1, 3, last};  // then predicates
    case OpcodeGroup::convert:
      return {1, mnemonic.has(Modifier::rs) ? 1U : count, last};
    case OpcodeGroup::store:
      return {1, 2, last};
    case OpcodeGroup::atomic:
      return {row.written + 1U, count - (mnemonic.has(Modifier::L2_cache_hint) ? 1U : 0U), last};
    case OpcodeGroup::arithmetic:
    case OpcodeGroup::logic:
    case OpcodeGroup::move:
      return mnemonic.types.size() == 1 ? Typed{row.written, count, last} : Typed{};
    default:
      return {};
  }
}

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

bool Parser::check_typed_operands(const Instruction& instruction, const Mnemonic& mnemonic) {
  const auto operands = body_.operands_of(instruction);
  const std::size_t wanted = wanted_operands(mnemonic, form_limits_);
  if (wanted != 0 && operands.size() != wanted) {
    return fail_at(instruction.text_offset,
                   fmt::format("'{}' takes {} operands with these modifiers, found {}",
                               excerpt(mnemonic.text, 60), wanted, operands.size()));
  }
  const Typed typed = typed_operands(mnemonic, operands.size());
  for (std::size_t i = typed.first; i < std::min(typed.end, operands.size()); ++i) {
    const Operand& operand = operands[i];
    if (operand.kind != OperandKind::immediate || typed.type == Type::none ||
        takes_constant(typed.type, operand.immediate)) {
      continue;
    }
    return fail_at(instruction.text_offset,
                   fmt::format("'{}': operand {} is a constant that type .{} does not take",
                               excerpt(mnemonic.text, 60), i + 1, info(typed.type).text));
  }
  const bool stores = mnemonic.opcode == Opcode::st;
  if (!stores && mnemonic.opcode != Opcode::ld && mnemonic.opcode != Opcode::ldu) return true;
  const Operand& value = operands[stores ? 1 : 0];
  std::size_t width = 1;
  if (value.kind == OperandKind::vector) {
    width = value.index;
  } else if (value.kind == OperandKind::reg && value.selector == Selector::none) {
    width = body_.range_of(value.index).vector_width;
  }
  if (width == mnemonic.vector_width) return true;
  return fail_at(
      instruction.text_offset,
      fmt::format("'{}' moves {} element{}, but its operand has {}", excerpt(mnemonic.text, 60),
                  mnemonic.vector_width, mnemonic.vector_width == 1 ? "" : "s", width));
}

}  // namespace demarc::ptx
