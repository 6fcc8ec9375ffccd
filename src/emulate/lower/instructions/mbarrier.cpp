// Barriers in shared memory.
#include "lower/instructions.hpp"
#include "lower/types.hpp"
#include "ops/async.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

namespace {

constexpr std::uint8_t word_bytes = 8;

// [result,] [place] [, number]
struct BarrierShape {
  BarrierOperation operation = BarrierOperation::nothing;
  std::optional<Type> result = std::nullopt;
  Type number = Type::u32;
};

std::optional<BarrierShape> barrier_shape(const InstructionView& instruction) {
  const auto arrival = [&](BarrierOperation operation) {
    BarrierShape shape{.operation = operation};
    if (instruction[0].kind != OperandKind::address) shape.result = Type::b64;
    return shape;
  };
  switch (instruction.opcode()) {
    case Opcode::mbarrier_init:
      return BarrierShape{BarrierOperation::init};
    case Opcode::mbarrier_inval:
      return BarrierShape{BarrierOperation::invalidate};
    case Opcode::mbarrier_expect_tx:
      return BarrierShape{BarrierOperation::expect};
    case Opcode::mbarrier_complete_tx:
      return BarrierShape{BarrierOperation::complete};
    case Opcode::mbarrier_arrive:
      return arrival(BarrierOperation::arrive);
    case Opcode::mbarrier_arrive_drop:
      return arrival(BarrierOperation::drop);
    case Opcode::mbarrier_test_wait:
    case Opcode::mbarrier_try_wait:
      if (instruction.has("parity"))
        return BarrierShape{.operation = BarrierOperation::test_parity, .result = Type::pred};
      return BarrierShape{
          .operation = BarrierOperation::test_state, .result = Type::pred, .number = Type::b64};
    case Opcode::cp_async_mbarrier_arrive:
      // The copies before it are done: with .noinc it counts as one of the expected arrivals,
      // without it adds one and takes it away.
      return BarrierShape{instruction.has("noinc") ? BarrierOperation::arrive
                                                   : BarrierOperation::nothing};
    default:
      return std::nullopt;
  }
}

std::uint64_t pending_of_state(LaneInput& lane, const LaneDetails&) {
  return pending_count(lane.in[0]);
}

bool lower_pending_count(FunctionContext& f, const InstructionView& instruction) {
  const Register d = f.operands.destination(instruction[0], Type::b32);
  f.code.lanes(pending_of_state, d, {f.operands.source(instruction[1], Type::b64)});
  return true;
}

bool place_barrier_result(FunctionContext& f, const ptx::Operand& operand, Type type,
                          BarrierDetails& made) {
  if (operand.kind == OperandKind::sink) return true;
  const Register d = f.operands.destination(operand, type);
  if (d.uniform) return false;
  made.result = d.slot.offset;
  made.result_width = d.width;
  made.has_result = true;
  return true;
}

void read_number(FunctionContext& f, const ptx::Operand& operand, Type type, BarrierDetails& made) {
  if (operand.kind == OperandKind::sink) return;
  const Source number = f.operands.source(operand, type);
  made.number = number.slot.offset;
  made.number_uniform = number.uniform;
  made.number_bytes = static_cast<std::uint8_t>(ptx::byte_size(type));
  made.has_number = true;
}

}  // namespace

bool complete_transfer(FunctionContext& f, const InstructionView& instruction,
                       const ptx::Operand& barrier, std::uint32_t bytes) {
  if (!instruction.has("mbarrier::complete_tx::bytes")) return false;
  auto op = f.operands.address(barrier, instruction.words().space);
  if (!op) return false;
  auto& made = f.code.details<BarrierDetails>();
  made.operation = BarrierOperation::complete;
  made.number = f.frame.constant(Type::u32, bytes).slot.offset;
  made.number_uniform = true;
  made.has_number = true;
  op->run = async_ops::barrier_word;
  op->bytes = word_bytes;
  op->flags |= memory_unraced;
  op->aux = &made;
  f.kernel.program.orders_warps = true;
  f.code.emit(*op);
  return true;
}

bool lower_mbarrier(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.opcode() == Opcode::mbarrier_pending_count)
    return lower_pending_count(f, instruction);
  const auto shape = barrier_shape(instruction);
  if (!shape) return false;
  const std::size_t place = shape->result ? 1 : 0;
  auto op = f.operands.address(instruction[place], instruction.words().space);
  if (!op) return false;
  auto& made = f.code.details<BarrierDetails>();
  made.operation = shape->operation;
  made.expects = instruction.has("expect_tx");
  // mbarrier.complete_tx is relaxed, whether it says so or not.
  made.relaxed = instruction.has("relaxed") || made.operation == BarrierOperation::complete;
  if (place + 1 < instruction.operands().size())
    read_number(f, instruction[place + 1], shape->number, made);
  if (shape->result && !place_barrier_result(f, instruction[0], *shape->result, made)) return false;
  op->run = async_ops::barrier_word;
  op->bytes = word_bytes;
  op->flags |= memory_unraced;
  op->aux = &made;
  f.kernel.program.orders_warps = true;
  f.code.note({.kind = AccessKind::atomic, .bytes = word_bytes, .place = AddressKind::shared});
  f.code.emit(*op);
  return true;
}

}  // namespace demarc::emulate
