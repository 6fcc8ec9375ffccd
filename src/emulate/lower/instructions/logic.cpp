// Logic and shifts, of words and of predicates.
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

// MicroOp::flags of control::pred_and and its kin.
constexpr std::uint8_t negates_a = 1;
constexpr std::uint8_t negates_b = 2;

struct LogicRow {
  Opcode opcode;
  std::size_t sources;
  AluByWidth of_signed;
  AluByWidth of_unsigned;
};

#define DEMARC_SAME(name) DEMARC_ALU_BY_WIDTH(name), DEMARC_ALU_BY_WIDTH(name)
constexpr std::array<LogicRow, 6> logic_rows{{
    // clang-format off
    {Opcode::and_, 2, DEMARC_SAME(and_b)},
    {Opcode::or_,  2, DEMARC_SAME(or_b)},
    {Opcode::xor_, 2, DEMARC_SAME(xor_b)},
    {Opcode::not_, 1, DEMARC_SAME(not_b)},
    {Opcode::shl,  2, DEMARC_SAME(shl_b)},
    {Opcode::shr,  2, DEMARC_ALU_BY_WIDTH(shr_s), DEMARC_ALU_BY_WIDTH(shr_u)},
    // clang-format on
}};
#undef DEMARC_SAME

bool lower_lop3(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type();
  const bool has_predicate = instruction[0].kind == ptx::OperandKind::pair;
  const ptx::Operand& truth = instruction[4];
  if (truth.kind != ptx::OperandKind::immediate) return false;
  const auto results = instruction.results();
  const Register d = f.operands.destination(results[0], type);
  std::vector<Source> sources = f.operands.sources(instruction.operands().subspan(1, 3), type);
  if (has_predicate) sources.push_back(f.operands.source(instruction[5], Type::pred));
  LaneDetails& made = f.code.lanes(lane::lop3, d, sources);
  Lop3Form form;
  form.truth = static_cast<std::uint8_t>(truth.value);
  if (has_predicate) {
    const Register p = f.operands.destination(results[1], Type::pred);
    made.has_second = true;
    made.second_slot = p.slot.offset;
    made.second_width = p.width;
    form.logic = instruction.has("and") ? Logic::conjunction : Logic::disjunction;
  }
  made.form = form;
  return true;
}

bool lower_funnel_shift(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], instruction.type());
  const Type type = instruction.type();
  LaneDetails& made = f.code.lanes(
      instruction.has("l") ? lane::shf_left : lane::shf_right, d,
      {f.operands.source(instruction[1], type), f.operands.source(instruction[2], type),
       f.operands.source(instruction[3], Type::u32)});
  made.form = AmountForm{instruction.has("wrap")};
  return true;
}

bool lower_cnot(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], instruction.type());
  const Source a = f.operands.source(instruction[1], instruction.type());
  f.code.lanes(lane::cnot, d, {a}).type = lane_type(instruction.type());
  return true;
}

}  // namespace

bool lower_logic(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type();
  if (type == Type::pred) return false;
  switch (instruction.opcode()) {
    case Opcode::lop3:
      return lower_lop3(f, instruction);
    case Opcode::shf:
      return lower_funnel_shift(f, instruction);
    case Opcode::cnot:
      return lower_cnot(f, instruction);
    default:
      break;
  }
  const std::uint32_t bytes = ptx::byte_size(type);
  if (bytes < 2 || bytes > 8) return false;
  for (const LogicRow& row : logic_rows) {
    if (row.opcode != instruction.opcode()) continue;
    const AluByWidth& alu = is_signed(type) ? row.of_signed : row.of_unsigned;
    const Register d = f.operands.destination(instruction[0], type);
    std::vector<Source> sources{f.operands.source(instruction[1], type)};
    if (row.sources > 1) {
      const bool shifts = row.opcode == Opcode::shl || row.opcode == Opcode::shr;
      sources.push_back(f.operands.source(instruction[2], shifts ? Type::u32 : type));
    }
    f.code.alu(alu.of(bytes), d, sources);
    return true;
  }
  return false;
}

bool lower_predicate_logic(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<Opcode, Handler, 4> handlers{{{Opcode::and_, control::pred_and},
                                                      {Opcode::or_, control::pred_or},
                                                      {Opcode::xor_, control::pred_xor},
                                                      {Opcode::not_, control::pred_and}}};
  const auto handler = look_up(handlers, instruction.opcode());
  if (!handler || instruction.type() != Type::pred) return false;
  // not p is (not p) and (not p).
  const bool inverts = instruction.opcode() == Opcode::not_;
  const Register d = f.operands.destination(instruction[0], Type::pred);
  const Source a = f.operands.source(instruction[1], Type::pred);
  const Source b = inverts ? a : f.operands.source(instruction[2], Type::pred);
  MicroOp& op = f.code.emit(*handler);
  op.d = d.slot.offset;
  op.a = a.slot.offset;
  op.b = b.slot.offset;
  op.flags = static_cast<std::uint8_t>((a.negated != inverts ? negates_a : 0) |
                                       (b.negated != inverts ? negates_b : 0));
  return true;
}

}  // namespace demarc::emulate
