// Registers of 16 bytes (.b128).
#include "lower/instructions.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

constexpr std::uint8_t wide_width = 16;

// A register: a constant has 8 bytes.
Source wide_source(FunctionContext& f, const ptx::Operand& operand) {
  const Source value = f.operands.source(operand, Type::b128);
  if (value.uniform) f.code.fail();
  return value;
}

// mov.b128 d, {low, high}
bool lower_wide_join(FunctionContext& f, const InstructionView& instruction) {
  const auto parts = instruction.children(instruction[1]);
  if (parts.size() != 2) return false;
  const Source low = f.operands.source(parts[0], Type::b64);
  const Source high = f.operands.source(parts[1], Type::b64);
  const Register d = f.operands.destination(instruction[0], Type::b128);
  MicroOp& op = f.code.emit(memory_ops::join_wide);
  op.d = d.slot.offset;
  op.a = low.slot.offset;
  op.b = high.slot.offset;
  op.uniform = uniform_bits(low, high);
  return true;
}

// mov.b128 {low, high}, a
bool lower_wide_split(FunctionContext& f, const InstructionView& instruction) {
  const Source a = wide_source(f, instruction[1]);
  const auto parts = instruction.children(instruction[0]);
  if (parts.size() != 2) return false;
  std::array<Slot, 2> slots;
  std::uint8_t thrown = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == OperandKind::sink) {
      thrown = static_cast<std::uint8_t>(thrown | (1U << i));
      continue;
    }
    const Register d = f.operands.destination(parts[i], Type::b64);
    if (d.uniform) return false;
    slots[i] = d.slot;
  }
  MicroOp& op = f.code.emit(memory_ops::split_wide);
  op.a = a.slot.offset;
  op.b = slots[0].offset;
  op.c = slots[1].offset;
  op.flags = thrown;
  return true;
}

}  // namespace

bool lower_wide_move(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.opcode() != Opcode::mov || instruction.type() != Type::b128) return false;
  if (instruction[1].kind == OperandKind::vector) return lower_wide_join(f, instruction);
  if (instruction[0].kind == OperandKind::vector) return lower_wide_split(f, instruction);
  const Source a = wide_source(f, instruction[1]);
  const Register d = f.operands.destination(instruction[0], Type::b128);
  MicroOp& op = f.code.emit(memory_ops::move_wide);
  op.d = d.slot.offset;
  op.a = a.slot.offset;
  return true;
}

bool lower_wide_access(FunctionContext& f, const InstructionView& instruction) {
  const bool loads = instruction.opcode() == Opcode::ld || instruction.opcode() == Opcode::ldu;
  if (!loads && instruction.opcode() != Opcode::st) return false;
  if (instruction.type() != Type::b128 || instruction.words().vector_width > 1) return false;
  auto op = f.operands.address(instruction[loads ? 1 : 0], instruction.words().space);
  if (!op) return false;
  const Slot slot = loads ? f.operands.destination(instruction[0], Type::b128).slot
                          : wide_source(f, instruction[1]).slot;
  op->run = loads ? memory_ops::load_wide : memory_ops::store_wide;
  op->d = slot.offset;
  op->b = slot.offset;
  op->bytes = wide_width;
  op->width = wide_width;
  if (instruction.has_any({"volatile", "relaxed", "acquire", "release"}))
    op->flags |= memory_strong;
  note_order(f, instruction, *op);
  f.code.note({.kind = loads ? AccessKind::load : AccessKind::store,
               .bytes = wide_width,
               .place = static_cast<AddressKind>(op->kind)});
  f.code.emit(*op);
  return true;
}

}  // namespace demarc::emulate
