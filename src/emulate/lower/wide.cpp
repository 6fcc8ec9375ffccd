// Registers of 16 bytes (.b128).
#include "lower/lower.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::OperandKind;
using ptx::Type;

// A register of 16 bytes from memory or to it.
bool Lowering::lower_wide_access(const ptx::Instruction& instruction, const ptx::Operand& place,
                                 const ptx::Operand& value, bool loads) {
  MicroOp op;
  if (mnemonic(instruction).vector_width > 1 || !address(place, mnemonic(instruction).space, op))
    return false;
  const Register reg = destination(value);
  if (reg.width != 16) return false;
  op.run = loads ? memory_ops::load_wide : memory_ops::store_wide;
  op.d = reg.slot;
  op.b = reg.slot;
  op.instruction = instruction_;
  op.bytes = 16;
  for (const char* strong : {"volatile", "relaxed", "acquire", "release"}) {
    if (has(instruction, strong)) op.flags |= memory_volatile;
  }
  note_access(loads ? AccessKind::load : AccessKind::store, 16, static_cast<AddressKind>(op.kind));
  program_->code.push_back(op);
  return true;
}

bool Lowering::lower_wide_move(const ptx::Instruction& instruction) {
  const auto list = operands(instruction);
  if (list[1].kind == OperandKind::vector) {
    const auto parts = body_->children(list[1]);
    if (parts.size() != 2) return false;
    const Source low = source(parts[0], Type::b64);
    const Source high = source(parts[1], Type::b64);
    const Register d = destination(list[0]);
    MicroOp& op = emit(memory_ops::join_wide);
    op.d = d.slot;
    op.a = low.slot;
    op.b = high.slot;
    op.uniform =
        static_cast<std::uint8_t>((low.uniform ? uniform_a : 0) | (high.uniform ? uniform_b : 0));
    return d.width == 16 && low.width == 8 && high.width == 8;
  }
  const Source a = source(list[1], Type::b128);
  if (list[0].kind != OperandKind::vector) {
    const Register d = destination(list[0]);
    MicroOp& op = emit(memory_ops::move_wide);
    op.d = d.slot;
    op.a = a.slot;
    return d.width == 16 && a.width == 16;
  }
  const auto parts = body_->children(list[0]);
  if (parts.size() != 2 || a.width != 16) return false;
  std::uint32_t slots[2] = {};
  std::uint8_t thrown = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    if (parts[i].kind == OperandKind::sink) {
      thrown = static_cast<std::uint8_t>(thrown | (1U << i));
      continue;
    }
    const Register d = destination(parts[i]);
    if (d.width != 8 || d.uniform) return false;
    slots[i] = d.slot;
  }
  MicroOp& op = emit(memory_ops::split_wide);
  op.a = a.slot;
  op.b = slots[0];
  op.c = slots[1];
  op.flags = thrown;
  return true;
}

}  // namespace demarc::emulate
