#include <array>

#include "lower/lower.hpp"
#include "ops/control.hpp"
#include "ops/memory.hpp"
#include "ops/warp.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

bool Lowering::lower_warp(const ptx::Instruction& instruction) {
  if (ptx::info(instruction.opcode).group == ptx::OpcodeGroup::matrix)
    return lower_matrix(instruction);
  if (ptx::info(instruction.opcode).group != ptx::OpcodeGroup::warp) return false;
  const auto list = operands(instruction);
  const Type type = mnemonic(instruction).type();
  auto& made = details<WarpDetails>();
  const bool sync = has(instruction, "sync");
  const bool pair = list[0].kind == OperandKind::pair;
  const auto results = pair ? body_->children(list[0]) : list.subspan(0, 1);
  Register d;
  if (results[0].kind == OperandKind::sink) {
    made.has_result = false;
  } else {
    d = destination(results[0]);
    if (d.uniform) return false;
  }
  if (pair && results[1].kind != OperandKind::sink) {
    made.has_predicate = true;
    made.predicate = destination(results[1]).slot;
  }
  const auto operand = [&](unsigned at, std::size_t index, Type as) {
    const Source s = source(list[index], as);
    made.slot[at] = s.slot;
    made.uniform[at] = s.uniform;
    if (at == 0) {
      made.negated = s.negated;
      if (!s.uniform && s.width != 0) made.width = s.width;
    }
    return s;
  };
  switch (instruction.opcode) {
    case Opcode::shfl: {
      made.operation = has(instruction, "up")     ? WarpOperation::shuffle_up
                       : has(instruction, "down") ? WarpOperation::shuffle_down
                       : has(instruction, "bfly") ? WarpOperation::shuffle_butterfly
                                                  : WarpOperation::shuffle_index;
      const Source a = operand(0, 1, Type::b32);
      operand(1, 2, Type::b32);
      operand(2, 3, Type::b32);
      if (!a.uniform && a.width != 4) return false;
      break;
    }
    case Opcode::vote:
      made.operation = has(instruction, "ballot") ? WarpOperation::vote_ballot
                       : has(instruction, "all")  ? WarpOperation::vote_all
                       : has(instruction, "any")  ? WarpOperation::vote_any
                                                  : WarpOperation::vote_uniform;
      operand(0, 1, Type::pred);
      break;
    case Opcode::match:
      made.operation =
          has(instruction, "all") ? WarpOperation::match_all : WarpOperation::match_any;
      made.width = static_cast<std::uint8_t>(ptx::byte_size(type));
      operand(0, 1, type);
      operand(1, 2, Type::b32);
      break;
    case Opcode::activemask:
      made.operation = WarpOperation::active_mask;
      break;
    case Opcode::elect:
      made.operation = WarpOperation::elect;
      break;
    case Opcode::redux: {
      static constexpr std::array<std::pair<std::string_view, WarpOperation>, 6> kinds{
          {{"add", WarpOperation::reduce_add},
           {"min", WarpOperation::reduce_min},
           {"max", WarpOperation::reduce_max},
           {"and", WarpOperation::reduce_and},
           {"or", WarpOperation::reduce_or},
           {"xor", WarpOperation::reduce_xor}}};
      if (type == Type::f32) return false;
      for (const auto& [name, kind] : kinds) {
        if (has(instruction, name)) made.operation = kind;
      }
      made.is_signed = type == Type::s32;
      operand(0, 1, type);
      operand(1, 2, Type::b32);
      break;
    }
    default:
      return false;
  }
  static_cast<void>(sync);
  MicroOp& op = emit(warp_ops::exchange);
  op.d = d.slot;
  op.aux = &made;
  return true;
}

}  // namespace demarc::emulate
