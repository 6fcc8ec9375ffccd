// Moves of registers, and of the parts of one.
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

constexpr std::uint32_t bits_of_a_byte = 8;

bool lower_predicate_move(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], Type::pred);
  const Source a = f.operands.source(instruction[1], Type::pred);
  // a and a: the flags negate both.
  constexpr std::uint8_t negates_both = 3;
  MicroOp& op = f.code.emit(control::pred_and);
  op.d = d.slot.offset;
  op.a = a.slot.offset;
  op.b = a.slot.offset;
  op.flags = a.negated ? negates_both : std::uint8_t{0};
  return d.width == 0 && a.width == 0;
}

// Whether mov joins or splits so many parts of equal size; types that are no plain bits have none.
bool can_be_parts(Type type, std::size_t count) {
  return ptx::info(type).kind == ptx::TypeKind::bits && (count == 1 || count == 2 || count == 4);
}

std::uint32_t bits_of_part(Type type, std::size_t count) {
  return static_cast<std::uint32_t>(ptx::byte_size(type) * bits_of_a_byte / count);
}

// mov.b64 {low, high}, a
bool lower_split(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type();
  const auto parts = instruction.children(instruction[0]);
  if (!can_be_parts(type, parts.size())) return false;
  const Source a = f.operands.source(instruction[1], type);
  const std::uint32_t bits = bits_of_part(type, parts.size());
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == OperandKind::sink) continue;
    const Register d = f.operands.any_destination(parts[i]);
    if (d.width * bits_of_a_byte != bits) return false;
    const bool is_low_word = i == 0 && d.width == 4 && a.width == 8;
    if (is_low_word) {
      f.code.alu(Alu::cvt_u32_u64, d, {a});
    } else {
      f.code.lanes(lane::split_part, d, {a}).form = PartForm{.bits = bits, .index = i};
    }
  }
  return a.width == ptx::byte_size(type);
}

// mov.b64 d, {low, high}
bool lower_join(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<std::uint32_t, Type, 3> part_types{
      {{8, Type::b8}, {16, Type::b16}, {32, Type::b32}}};
  const Type type = instruction.type();
  const Register d = f.operands.destination(instruction[0], type);
  const auto parts = instruction.children(instruction[1]);
  if (!can_be_parts(type, parts.size())) return false;
  const std::uint32_t bits = bits_of_part(type, parts.size());
  const std::vector<Source> sources =
      f.operands.sources(parts, look_up(part_types, bits).value_or(Type::b32));
  for (const Source& part : sources) {
    if (part.width * bits_of_a_byte != bits) return false;
  }
  f.code.lanes(lane::join_parts, d, sources).form = PartForm{.bits = bits};
  return d.width == ptx::byte_size(type);
}

// The elements of a vector, and of a special register such as %tid.
std::vector<ptx::Operand> elements_of(const InstructionView& instruction,
                                      const ptx::Operand& operand, std::size_t count) {
  const auto written = instruction.elements(operand);
  std::vector<ptx::Operand> out(written.begin(), written.end());
  const bool is_special =
      operand.kind == OperandKind::special && operand.selector == ptx::Selector::none;
  while (is_special && out.size() < count) out.push_back(operand);
  for (std::size_t i = 0; is_special && i < count; ++i) {
    out[i].selector = static_cast<ptx::Selector>(static_cast<std::size_t>(ptx::Selector::x) + i);
  }
  return out;
}

// mov.v4.u32 d, a: element by element, all of which are read before one is written.
bool lower_vector_move(FunctionContext& f, const InstructionView& instruction) {
  const Type type = instruction.type();
  const std::size_t count = instruction.words().vector_width;
  const auto to = elements_of(instruction, instruction[0], count);
  const auto from = elements_of(instruction, instruction[1], count);
  const std::uint32_t bytes = ptx::byte_size(type);
  if (to.size() != count || from.size() != count || bytes == 0 || bytes > 8) return false;
  std::vector<Register> between;
  for (const ptx::Operand& operand : from) {
    between.push_back(f.frame.vector(static_cast<std::uint8_t>(bytes)));
    f.code.alu(move_of_width(bytes), between.back(), {f.operands.source(operand, type)});
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (to[i].kind == OperandKind::sink) continue;
    f.code.alu(move_of_width(bytes), f.operands.destination(to[i], type), {value_of(between[i])});
  }
  return true;
}

}  // namespace

bool lower_move(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.opcode() != Opcode::mov) return false;
  const Type type = instruction.type();
  if (type == Type::pred) return lower_predicate_move(f, instruction);
  if (instruction.words().vector_width > 1) return lower_vector_move(f, instruction);
  if (ptx::byte_size(type) > 8) return false;
  if (instruction[0].kind == OperandKind::vector) return lower_split(f, instruction);
  if (instruction[1].kind == OperandKind::vector) return lower_join(f, instruction);
  const Register d = f.operands.destination(instruction[0], type);
  const Source a = f.operands.source(instruction[1], type);
  f.code.alu(move_of_width(ptx::byte_size(type)), d, {a});
  return true;
}

bool lower_permute(FunctionContext& f, const InstructionView& instruction) {
  static constexpr Rows<std::string_view, PermuteMode, 6> modes{{{"f4e", PermuteMode::f4e},
                                                                 {"b4e", PermuteMode::b4e},
                                                                 {"rc8", PermuteMode::rc8},
                                                                 {"ecl", PermuteMode::ecl},
                                                                 {"ecr", PermuteMode::ecr},
                                                                 {"rc16", PermuteMode::rc16}}};
  if (instruction.opcode() != Opcode::prmt) return false;
  const Register d = f.operands.destination(instruction[0], Type::b32);
  LaneDetails& made = f.code.lanes(
      lane::prmt, d, f.operands.sources(instruction.operands().subspan(1, 3), Type::b32));
  made.form = instruction.chosen(modes).value_or(PermuteMode::index);
  return true;
}

}  // namespace demarc::emulate
