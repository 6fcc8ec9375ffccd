// Barriers of a block and of a warp.
#include "groups.hpp"
#include "lower/instructions.hpp"
#include "ops/cluster.hpp"
#include "ops/control.hpp"
#include "ops/warp.hpp"

namespace demarc::emulate {

using ptx::Opcode;

namespace {

enum class BarrierKind : std::uint8_t { sync, arrive, reduce, warp, cluster_arrive, cluster_wait };

BarrierKind barrier_kind(Opcode opcode) {
  switch (opcode) {
    case Opcode::bar_warp_sync:
      return BarrierKind::warp;
    case Opcode::barrier_cluster_arrive:
      return BarrierKind::cluster_arrive;
    case Opcode::barrier_cluster_wait:
      return BarrierKind::cluster_wait;
    case Opcode::bar_arrive:
    case Opcode::bar_cta_arrive:
    case Opcode::barrier_arrive:
    case Opcode::barrier_cta_arrive:
      return BarrierKind::arrive;
    case Opcode::bar_red:
    case Opcode::bar_cta_red:
    case Opcode::barrier_red:
    case Opcode::barrier_cta_red:
      return BarrierKind::reduce;
    default:
      return BarrierKind::sync;
  }
}

// bar is barrier.aligned: all threads of a warp execute the same one.
bool is_aligned(const InstructionView& instruction) {
  switch (instruction.opcode()) {
    case Opcode::bar_sync:
    case Opcode::bar_cta_sync:
    case Opcode::bar_arrive:
    case Opcode::bar_cta_arrive:
    case Opcode::bar_red:
    case Opcode::bar_cta_red:
      return true;
    default:
      return instruction.has("aligned");
  }
}

void lower_warp_barrier(FunctionContext& f, const InstructionView& instruction) {
  auto& made = f.code.details<WarpDetails>();
  made.operation = WarpOperation::synchronize;
  made.has_result = false;
  const Source members = f.operands.source(instruction[0], ptx::Type::b32);
  made.slot[0] = members.slot.offset;
  made.uniform[0] = members.uniform;
  made.members = 0;
  made.one_mask = members.uniform;
  f.code.emit(warp_ops::exchange).aux = &made;
}

// [d,] id [, count] [, predicate]: the first and the last for a reduction alone.
void lower_block_barrier(FunctionContext& f, const InstructionView& instruction, BarrierKind kind) {
  const bool reduces = kind == BarrierKind::reduce;
  const auto inputs = instruction.operands().subspan(
      reduces ? 1 : 0, instruction.operands().size() - (reduces ? 2 : 0));
  const bool has_count = inputs.size() > 1;
  const Source id = f.operands.source(inputs[0], ptx::Type::u32);
  const Source count = has_count ? f.operands.source(inputs[1], ptx::Type::u32) : Source{};
  Source predicate;
  Register d;
  if (reduces) {
    predicate = f.operands.source(instruction.operands().back(), ptx::Type::pred);
    d = f.operands.destination(instruction[0],
                               instruction.has("popc") ? ptx::Type::u32 : ptx::Type::pred);
    if (d.uniform) f.code.fail();
  }
  MicroOp& op = f.code.emit(control::barrier);
  op.a = id.slot.offset;
  op.b = count.slot.offset;
  op.c = predicate.slot.offset;
  op.d = d.slot.offset;
  op.uniform = uniform_bits(id, count);
  op.flags =
      static_cast<std::uint8_t>((has_count ? control::barrier_has_count : 0) |
                                (kind == BarrierKind::arrive ? control::barrier_arrive_only : 0) |
                                (reduces ? control::barrier_reduces : 0) |
                                (predicate.negated ? control::barrier_negated : 0));
  op.width = instruction.has("and") ? 1 : (instruction.has("or") ? 2 : 0);
  f.kernel.program.suspends = true;
  // Of part of the block, perhaps.
  if (has_count || kind == BarrierKind::arrive) f.kernel.program.orders_warps = true;
}

}  // namespace

bool lower_barrier(FunctionContext& f, const InstructionView& instruction) {
  const BarrierKind kind = barrier_kind(instruction.opcode());
  if (is_aligned(instruction)) f.code.emit(control::step);
  switch (kind) {
    case BarrierKind::warp:
      lower_warp_barrier(f, instruction);
      break;
    case BarrierKind::cluster_arrive:
      f.code.emit(cluster_ops::arrive);
      f.kernel.program.in_clusters = true;
      break;
    case BarrierKind::cluster_wait:
      f.code.emit(cluster_ops::wait);
      f.kernel.program.in_clusters = true;
      f.kernel.program.suspends = true;
      break;
    default:
      lower_block_barrier(f, instruction, kind);
  }
  return true;
}

}  // namespace demarc::emulate
