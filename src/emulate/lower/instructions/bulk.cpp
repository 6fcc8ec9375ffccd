// Bulk copies and reductions between global and shared memory, without tensor maps.
#include "ops/bulk.hpp"
#include "lower/bulk_parts.hpp"
#include "lower/instructions.hpp"
#include "lower/types.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::StateSpace;

namespace {

constexpr std::uint8_t arrival_barrier_bytes = 8;

struct BulkWay {
  StateSpace to;
  StateSpace from;
};

// Empty: not between two spaces, or of some bytes of each 16 only.
std::optional<BulkWay> bulk_way(const InstructionView& instruction) {
  static constexpr Rows<std::string_view, StateSpace, 4> names{
      {{"global", StateSpace::global},
       {"shared::cta", StateSpace::shared},
       {"shared::cluster", StateSpace::shared},
       {"shared", StateSpace::shared}}};
  if (instruction.has_any({"cp_mask", "ignore_oob"})) return std::nullopt;
  std::vector<StateSpace> spaces;
  for (const ptx::ModifierUse& use : instruction.words().modifiers) {
    if (const auto space = look_up(names, std::string_view(use.text))) spaces.push_back(*space);
  }
  if (spaces.size() != 2) return std::nullopt;
  return BulkWay{.to = spaces[0], .from = spaces[1]};
}

bool set_reduction(const InstructionView& instruction, BulkReduction& made) {
  const auto kind = atomic_kind(instruction);
  const auto type = atomic_type(instruction.type());
  if (!kind || !type || *kind == AtomicKind::exch || *kind == AtomicKind::cas) return false;
  made.reduces = true;
  made.kind = *kind;
  made.type = *type;
  made.element_bytes = ptx::byte_size(instruction.type());
  return true;
}

}  // namespace

MicroOp part_of_copy(const Emitter& code, const MicroOp& op, std::uint8_t bytes) {
  MicroOp part = op;
  part.instruction = code.instruction();
  part.bytes = bytes;
  return part;
}

bool lower_arrival(FunctionContext& f, const InstructionView& instruction,
                   const ArrivalOperands& operands, BulkArrival& made) {
  auto to = f.operands.address(operands.to, operands.space);
  if (!to) return false;
  made.scratch = f.frame.lanes(sizeof(std::uint64_t)).offset;
  to->flags |= memory_unraced;
  made.to = part_of_copy(f.code, *to, bulk_granule);
  made.multicast = instruction.has("multicast::cluster");
  made.signals = instruction.has("mbarrier::complete_tx::bytes");
  if (made.multicast && !made.signals) return false;
  if (!made.signals) return true;
  if (operands.rest.size() < (made.multicast ? 2U : 1U)) return false;
  auto barrier = f.operands.address(operands.rest[0], StateSpace::shared);
  if (!barrier) return false;
  barrier->flags |= memory_unraced;
  made.barrier = part_of_copy(f.code, *barrier, arrival_barrier_bytes);
  if (!made.multicast) return true;
  f.kernel.program.in_clusters = true;
  const Source blocks = f.operands.source(operands.rest[1], ptx::Type::u16);
  made.blocks = blocks.slot.offset;
  made.blocks_uniform = blocks.uniform;
  return true;
}

// cp.async.bulk [to], [from], bytes [, barrier [, blocks]] and cp.reduce.async.bulk
bool lower_bulk_copy(FunctionContext& f, const InstructionView& instruction) {
  const bool reduces = instruction.opcode() == Opcode::cp_reduce_async_bulk;
  if (!reduces && instruction.opcode() != Opcode::cp_async_bulk) return false;
  const auto way = bulk_way(instruction);
  if (!way || instruction.operands().size() < 3) return false;
  auto& made = f.code.details<BulkDetails>();
  const ArrivalOperands arrival{instruction[0], way->to, instruction.operands().subspan(3)};
  const auto from = f.operands.address(instruction[1], way->from);
  if (!from || !lower_arrival(f, instruction, arrival, made.arrival)) return false;
  if (made.arrival.multicast && (way->to != StateSpace::shared || way->from != StateSpace::global))
    return false;
  const Source bytes = f.operands.source(instruction[2], ptx::Type::u32);
  made.bytes = bytes.slot.offset;
  made.bytes_uniform = bytes.uniform;
  made.from = part_of_copy(f.code, *from, bulk_granule);
  if (reduces && !set_reduction(instruction, made.reduction)) return false;
  // What it does to global memory.
  AccessKind kind = way->to == StateSpace::global ? AccessKind::store : AccessKind::load;
  if (reduces && way->to == StateSpace::global) {
    kind = AccessKind::atomic;
    f.code.order_blocks();
  }
  f.code.note({.kind = kind, .bytes = bulk_granule, .place = AddressKind::global});
  f.code.emit(bulk_ops::copy).aux = &made;
  return true;
}

}  // namespace demarc::emulate
