// Copies of up to 16 bytes that run beside the threads, and what waits for copies.
#include "lower/instructions.hpp"
#include "ops/control.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::StateSpace;

namespace {

// cp.async [shared], [global], bytes [, bytes that are read] [, policy]
bool lower_copy_async(FunctionContext& f, const InstructionView& instruction) {
  const ptx::Operand& size = instruction[2];
  if (size.kind != OperandKind::immediate) return false;
  if (size.value != 4 && size.value != 8 && size.value != 16) return false;
  auto to = f.operands.address(instruction[0], StateSpace::shared);
  auto from = f.operands.address(instruction[1], StateSpace::global);
  if (!to || !from) return false;
  auto& made = f.code.details<AsyncDetails>();
  made.bytes = static_cast<std::uint32_t>(size.value);
  // A policy comes last.
  const std::size_t without_policy =
      instruction.operands().size() - (instruction.has("L2::cache_hint") ? 1 : 0);
  if (without_policy > 3) {
    const Source read = f.operands.source(instruction[3], ptx::Type::u32);
    if (read.width == 0) return false;  // a predicate
    made.has_source_bytes = true;
    made.source_bytes = read.slot.offset;
    made.source_bytes_uniform = read.uniform;
  }
  to->bytes = static_cast<std::uint8_t>(made.bytes);
  to->instruction = f.code.instruction();
  made.destination = *to;
  from->bytes = to->bytes;
  from->run = memory_ops::copy_async;
  from->aux = &made;
  f.code.note({.kind = AccessKind::load, .bytes = made.bytes, .place = AddressKind::global});
  f.code.emit(*from);
  return true;
}

}  // namespace

bool lower_async(FunctionContext& f, const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::cp_async:
      return lower_copy_async(f, instruction);
    case Opcode::cp_async_commit_group:
    case Opcode::cp_async_wait_group:
    case Opcode::cp_async_wait_all:
    case Opcode::cp_async_bulk_commit_group:
    case Opcode::cp_async_bulk_wait_group:
    case Opcode::cp_async_bulk_prefetch:
      f.code.emit(control::nothing);  // copies are done when they are issued
      return true;
    default:
      return false;
  }
}

}  // namespace demarc::emulate
