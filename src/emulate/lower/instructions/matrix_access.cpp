// Matrices between shared memory and registers: ldmatrix, stmatrix and movmatrix.
#include "lower/instructions.hpp"
#include "ops/memory.hpp"
#include "ops/warp.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::Type;

namespace {

constexpr std::uint8_t row_bytes = 16;
constexpr std::size_t max_matrices = 4;

bool lower_matrix_rows(FunctionContext& f, const InstructionView& instruction) {
  const bool loads = instruction.opcode() == Opcode::ldmatrix;
  if (instruction.type() != Type::b16 || !instruction.has("m8n8")) return false;
  const auto parts = instruction.elements(instruction[loads ? 0 : 1]);
  if (parts.size() > max_matrices) return false;
  auto& made = f.code.details<MatrixAccessDetails>();
  made.transposed = instruction.has("trans");
  made.matrices = static_cast<unsigned>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Source reg = loads ? value_of(f.operands.destination(parts[i], Type::b32))
                             : f.operands.source(parts[i], Type::b32);
    if (reg.uniform) return false;
    made.slots[i] = reg.slot.offset;
  }
  auto op = f.operands.address(instruction[loads ? 1 : 0], instruction.words().space);
  if (!op) return false;
  op->run = loads ? memory_ops::load_matrix : memory_ops::store_matrix;
  op->bytes = row_bytes;
  op->aux = &made;
  f.code.note({.kind = loads ? AccessKind::load : AccessKind::store,
               .bytes = row_bytes,
               .place = static_cast<AddressKind>(op->kind)});
  f.code.emit(*op);
  return true;
}

bool lower_matrix_move(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], Type::b32);
  const Source a = f.operands.source(instruction[1], Type::b32);
  if (a.uniform || d.uniform) return false;
  MicroOp& op = f.code.emit(warp_ops::move_matrix);
  op.d = d.slot.offset;
  op.a = a.slot.offset;
  return true;
}

}  // namespace

bool lower_matrix_access(FunctionContext& f, const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::ldmatrix:
    case Opcode::stmatrix:
      return lower_matrix_rows(f, instruction);
    case Opcode::movmatrix:
      return lower_matrix_move(f, instruction);
    default:
      return false;
  }
}

}  // namespace demarc::emulate
