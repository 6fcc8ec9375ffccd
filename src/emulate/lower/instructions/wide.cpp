// Registers of 16 bytes (.b128).
#include "lower/instructions.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

constexpr std::uint8_t wide_width = 16;
constexpr std::uint8_t half_width = 8;

// mov.b128 d, {low, high}
bool lower_wide_join(FunctionContext& f, const InstructionView& instruction) {
  const auto parts = instruction.children(instruction[1]);
  if (parts.size() != 2) return false;
  const Source low = f.operands.source(parts[0], Type::b64);
  const Source high = f.operands.source(parts[1], Type::b64);
  const Register d = f.operands.destination(instruction[0]);
  MicroOp& op = f.code.emit(memory_ops::join_wide);
  op.d = d.slot.offset;
  op.a = low.slot.offset;
  op.b = high.slot.offset;
  op.uniform = uniform_bits(low, high);
  return d.width == wide_width && low.width == half_width && high.width == half_width;
}

// mov.b128 {low, high}, a
bool lower_wide_split(FunctionContext& f, const InstructionView& instruction) {
  const Source a = f.operands.source(instruction[1], Type::b128);
  const auto parts = instruction.children(instruction[0]);
  if (parts.size() != 2 || a.width != wide_width) return false;
  std::array<Slot, 2> slots;
  std::uint8_t thrown = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == OperandKind::sink) {
      thrown = static_cast<std::uint8_t>(thrown | (1U << i));
      continue;
    }
    const Register d = f.operands.destination(parts[i]);
    if (d.width != half_width || d.uniform) return false;
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
  const Source a = f.operands.source(instruction[1], Type::b128);
  const Register d = f.operands.destination(instruction[0]);
  MicroOp& op = f.code.emit(memory_ops::move_wide);
  op.d = d.slot.offset;
  op.a = a.slot.offset;
  return d.width == wide_width && a.width == wide_width;
}

bool lower_wide_access(FunctionContext& f, const InstructionView& instruction) {
  const bool loads = instruction.opcode() == Opcode::ld || instruction.opcode() == Opcode::ldu;
  if (!loads && instruction.opcode() != Opcode::st) return false;
  if (instruction.type() != Type::b128 || instruction.words().vector_width > 1) return false;
  auto op = f.operands.address(instruction[loads ? 1 : 0], instruction.words().space);
  if (!op) return false;
  const Register reg = f.operands.destination(instruction[loads ? 0 : 1]);
  if (reg.width != wide_width) return false;
  op->run = loads ? memory_ops::load_wide : memory_ops::store_wide;
  op->d = reg.slot.offset;
  op->b = reg.slot.offset;
  op->bytes = wide_width;
  if (instruction.has_any({"volatile", "relaxed", "acquire", "release"}))
    op->flags |= memory_volatile;
  f.code.note({.kind = loads ? AccessKind::load : AccessKind::store,
               .bytes = wide_width,
               .place = static_cast<AddressKind>(op->kind)});
  f.code.emit(*op);
  return true;
}

}  // namespace demarc::emulate
