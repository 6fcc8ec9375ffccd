// Selections: selp and slct.
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

bool lower_selp(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type();
  const Register d = f.operands.destination(instruction[0], type);
  const Source condition = f.operands.source(instruction[3], Type::pred);
  const std::uint32_t bytes = ptx::byte_size(type);
  if (type == Type::pred || bytes < 2 || bytes > 8) return false;
  const Source a = f.operands.source(instruction[1], type);
  const Source b = f.operands.source(instruction[2], type);
  // A negated condition swaps the two.
  const bool swaps = condition.negated;
  f.code.alu(DEMARC_ALU_BY_WIDTH(selp_b).of(bytes), d, {swaps ? b : a, swaps ? a : b, condition});
  return true;
}

bool lower_slct(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type(0);
  const Type condition = instruction.type(1);
  const Register d = f.operands.destination(instruction[0], type);
  LaneDetails& made = f.code.lanes(
      lane::slct, d,
      {f.operands.source(instruction[1], type), f.operands.source(instruction[2], type),
       f.operands.source(instruction[3], condition)});
  made.from = lane_type(condition);
  made.ftz = instruction.has("ftz");
  return true;
}

}  // namespace

bool lower_select(FunctionContext& f, const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::selp:
      return lower_selp(f, instruction);
    case Opcode::slct:
      return lower_slct(f, instruction);
    default:
      return false;
  }
}

}  // namespace demarc::emulate
