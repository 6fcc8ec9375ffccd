// Atomic operations, and reductions that give no result back.
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

// The operands of each element.
bool read_atomic_values(FunctionContext& f, const InstructionView& instruction,
                        const ptx::Operand& operand, AtomicDetails& made) {
  const std::uint32_t bytes = ptx::byte_size(instruction.type());
  const auto values = instruction.elements(operand);
  if (values.size() != instruction.words().vector_width) return false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Source b = f.operands.source(values[i], instruction.type());
    if (!b.uniform && b.width != bytes) return false;
    made.b[i] = b.slot.offset;
    made.b_uniform[i] = b.uniform;
  }
  return true;
}

enum class AtomicResult : std::uint8_t { used, thrown_away, not_covered };

AtomicResult place_atomic_results(FunctionContext& f, const InstructionView& instruction,
                                  AtomicDetails& made) {
  if (instruction[0].kind == OperandKind::sink) return AtomicResult::thrown_away;
  const auto results = instruction.elements(instruction[0]);
  if (results.size() != instruction.words().vector_width) return AtomicResult::not_covered;
  AtomicResult out = AtomicResult::thrown_away;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind == OperandKind::sink) continue;
    const Register d = f.operands.destination(results[i], instruction.type());
    if (d.uniform) return AtomicResult::not_covered;
    made.d[i] = d.slot.offset;
    out = AtomicResult::used;
  }
  return out;
}

// Whether the outcome is the same in any order.
bool commutes(AtomicKind kind, Type type) {
  switch (kind) {
    case AtomicKind::exch:
    case AtomicKind::cas:
    case AtomicKind::inc:
    case AtomicKind::dec:
      return false;
    case AtomicKind::add:
      return !is_floating(type);
    default:
      return true;
  }
}

// PTX ISA 9.7.9.15.
bool is_async_reduction(AtomicKind kind, Type type) {
  switch (kind) {
    case AtomicKind::inc:
    case AtomicKind::dec:
      return type == Type::u32;
    case AtomicKind::min:
    case AtomicKind::max:
      return type == Type::u32 || type == Type::s32;
    case AtomicKind::add:
      return type == Type::u32 || type == Type::s32 || type == Type::u64 || type == Type::s64;
    case AtomicKind::bit_and:
    case AtomicKind::bit_or:
    case AtomicKind::bit_xor:
      return type == Type::b32;
    default:
      return false;
  }
}

}  // namespace

// atom d, [place], b [, c], red [place], b and red.async [place], b, [barrier]
bool lower_atomic(FunctionContext& f, const InstructionView& instruction) {
  const bool gives_result = instruction.opcode() == Opcode::atom;
  const bool async = instruction.opcode() == Opcode::red_async;
  if (!gives_result && !async && instruction.opcode() != Opcode::red) return false;
  const Type type = instruction.type();
  const std::uint32_t bytes = ptx::byte_size(type);
  const auto kind = atomic_kind(instruction);
  const auto known_type = atomic_type(type);
  if (!kind || !known_type || bytes == 0 || bytes > 8) return false;
  if (async && !is_async_reduction(*kind, type)) return false;
  auto& made = f.code.details<AtomicDetails>();
  made.kind = *kind;
  made.type = *known_type;
  const std::size_t place = gives_result ? 1 : 0;
  auto op = f.operands.address(instruction[place], instruction.words().space);
  if (!op || !read_atomic_values(f, instruction, instruction[place + 1], made)) return false;
  if (*kind == AtomicKind::cas) {
    const Source c = f.operands.source(instruction[place + 2], type);
    made.c = c.slot.offset;
    made.c_uniform = c.uniform;
  }
  const AtomicResult result =
      gives_result ? place_atomic_results(f, instruction, made) : AtomicResult::thrown_away;
  if (result == AtomicResult::not_covered) return false;
  op->run = memory_ops::atomic;
  op->bytes = static_cast<std::uint8_t>(bytes);
  op->count = instruction.words().vector_width;
  op->aux = &made;
  note_order(f, instruction, *op);
  const auto where = static_cast<AddressKind>(op->kind);
  f.code.note({.kind = AccessKind::atomic, .bytes = bytes * op->count, .place = where});
  f.code.emit(*op);
  // Blocks do not see each other's shared memory.
  if (made.d[0] != AtomicDetails::sink) note_polls(f, instruction, where);
  if (where != AddressKind::shared && (result == AtomicResult::used || !commutes(*kind, type)))
    f.code.order_blocks();
  return !async || (instruction.operands().size() == 3 &&
                    complete_transfer(f, instruction, instruction[2], bytes * op->count));
}

}  // namespace demarc::emulate
