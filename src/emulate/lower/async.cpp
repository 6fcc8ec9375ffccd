// Copies that run beside the threads, and the barriers in shared memory that tell when they are
// done.
#include <array>

#include "lower/lower.hpp"
#include "ops/async.hpp"
#include "ops/control.hpp"
#include "ops/memory.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::StateSpace;
using ptx::Type;

bool Lowering::lower_async(const ptx::Instruction& instruction) {
  const auto list = operands(instruction);
  switch (instruction.opcode) {
    case Opcode::cp_async_commit_group:
    case Opcode::cp_async_wait_group:
    case Opcode::cp_async_wait_all:
    case Opcode::cp_async_bulk_commit_group:
    case Opcode::cp_async_bulk_wait_group:
    case Opcode::cp_async_bulk_prefetch:
      // Copies are done when they are issued.
      emit(control::nothing);
      return true;
    case Opcode::cp_async_bulk:
    case Opcode::cp_reduce_async_bulk:
      return lower_bulk_copy(instruction);
    case Opcode::cp_async_mbarrier_arrive:
      return lower_mbarrier(instruction);
    case Opcode::cp_async:
      break;
    default:
      return false;
  }
  auto& made = details<AsyncDetails>();
  MicroOp from;
  if (!address(list[0], ptx::StateSpace::shared, made.destination) ||
      !address(list[1], ptx::StateSpace::global, from))
    return false;
  if (list[2].kind != OperandKind::immediate) return false;
  made.bytes = static_cast<std::uint32_t>(list[2].value);
  if (made.bytes != 4 && made.bytes != 8 && made.bytes != 16) return false;
  if (list.size() > 3 && !has(instruction, "L2::cache_hint")) {
    if (list[3].kind == OperandKind::reg && registers_[list[3].index].width == 0) return false;
    const Source size = source(list[3], Type::u32);
    made.has_source_bytes = true;
    made.source_bytes = size.slot;
    made.source_bytes_uniform = size.uniform;
  }
  made.destination.bytes = static_cast<std::uint8_t>(made.bytes);
  made.destination.instruction = instruction_;
  from.bytes = static_cast<std::uint8_t>(made.bytes);
  from.instruction = instruction_;
  from.run = memory_ops::copy_async;
  from.aux = &made;
  note_access(AccessKind::load, made.bytes, AddressKind::global);
  program_->code.push_back(from);
  return true;
}

// cp.async.bulk and cp.reduce.async.bulk between global and shared memory, without tensor maps.
bool Lowering::lower_bulk_copy(const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = mnemonic(instruction);
  const auto list = operands(instruction);
  std::vector<StateSpace> spaces;
  bool signals = false;
  for (const ptx::ModifierUse& use : words.modifiers) {
    if (use.text == "global") spaces.push_back(StateSpace::global);
    if (use.text == "shared::cta" || use.text == "shared::cluster" || use.text == "shared")
      spaces.push_back(StateSpace::shared);
    signals = signals || use.text == "mbarrier::complete_tx::bytes";
    // A copy to other blocks of a cluster, or of some bytes of each 16 only.
    if (use.text == "multicast::cluster" || use.text == "cp_mask" || use.text == "ignore_oob")
      return false;
  }
  if (spaces.size() != 2 || list.size() < 3) return false;
  auto& made = details<BulkDetails>();
  if (!address(list[0], spaces[0], made.to) || !address(list[1], spaces[1], made.from))
    return false;
  const Source bytes = source(list[2], Type::u32);
  made.bytes = bytes.slot;
  made.bytes_uniform = bytes.uniform;
  if (signals) {
    if (list.size() < 4 || !address(list[3], StateSpace::shared, made.barrier)) return false;
    made.signals = true;
  }
  made.scratch = take_slot(8 * warp_size, 64);
  for (MicroOp* part : {&made.to, &made.from, &made.barrier}) {
    part->instruction = instruction_;
    part->bytes = 16;
    part->flags |= memory_volatile;
  }
  made.barrier.bytes = 8;
  made.from.flags = static_cast<std::uint8_t>(made.from.flags & ~memory_volatile);
  // What it does to global memory.
  AccessKind kind = spaces[0] == StateSpace::global ? AccessKind::store : AccessKind::load;
  if (instruction.opcode == Opcode::cp_reduce_async_bulk) {
    if (!bulk_reduction(words, made)) return false;
    if (spaces[0] == StateSpace::global) {
      kind = AccessKind::atomic;
      program_->ordered = true;
    }
  }
  note_access(kind, 16, AddressKind::global);
  MicroOp& op = emit(async_ops::copy_bulk);
  op.aux = &made;
  return true;
}

bool Lowering::bulk_reduction(const ptx::Mnemonic& words, BulkDetails& made) {
  static constexpr std::array<std::pair<std::string_view, AtomicKind>, 8> kinds{
      {{"add", AtomicKind::add},
       {"min", AtomicKind::min},
       {"max", AtomicKind::max},
       {"inc", AtomicKind::inc},
       {"dec", AtomicKind::dec},
       {"and", AtomicKind::bit_and},
       {"or", AtomicKind::bit_or},
       {"xor", AtomicKind::bit_xor}}};
  made.reduces = false;
  for (const ptx::ModifierUse& use : words.modifiers) {
    for (const auto& [name, kind] : kinds) {
      if (use.text != name) continue;
      made.kind = kind;
      made.reduces = true;
    }
  }
  made.element_bytes = ptx::byte_size(words.type());
  const auto type = atomic_type(words.type());
  if (!type || !made.reduces) return false;
  made.type = *type;
  return true;
}

bool Lowering::lower_mbarrier(const ptx::Instruction& instruction) {
  const auto list = operands(instruction);
  auto& made = details<BarrierDetails>();
  // Operands: [result,] address, [a number].
  std::size_t place = 0;
  std::size_t number = 1;
  Type number_type = Type::u32;
  bool has_result = false;
  switch (instruction.opcode) {
    case Opcode::mbarrier_init:
      made.operation = BarrierOperation::init;
      break;
    case Opcode::mbarrier_inval:
      made.operation = BarrierOperation::invalidate;
      break;
    case Opcode::mbarrier_expect_tx:
      made.operation = BarrierOperation::expect;
      break;
    case Opcode::mbarrier_complete_tx:
      made.operation = BarrierOperation::complete;
      break;
    case Opcode::mbarrier_arrive:
    case Opcode::mbarrier_arrive_drop:
      made.operation = instruction.opcode == Opcode::mbarrier_arrive ? BarrierOperation::arrive
                                                                     : BarrierOperation::drop;
      made.expects = has(instruction, "expect_tx");
      has_result = list[0].kind != OperandKind::address;
      place = has_result ? 1 : 0;
      number = place + 1;
      break;
    case Opcode::mbarrier_test_wait:
    case Opcode::mbarrier_try_wait:
      made.operation =
          has(instruction, "parity") ? BarrierOperation::test_parity : BarrierOperation::test_state;
      if (made.operation == BarrierOperation::test_state) number_type = Type::b64;
      has_result = true;
      place = 1;
      number = 2;
      break;
    case Opcode::mbarrier_pending_count: {
      const Register d = destination(list[0]);
      LaneDetails& count =
          emit_lanes([](LaneInput& lane,
                        const LaneDetails&) { return std::uint64_t{pending_count(lane.in[0])}; },
                     d, {source(list[1], Type::b64)});
      return count.result_width == 4;
    }
    case Opcode::cp_async_mbarrier_arrive:
      // The copies before it are done: with .noinc it counts as one of the expected arrivals,
      // without it adds one and takes it away.
      made.operation =
          has(instruction, "noinc") ? BarrierOperation::arrive : BarrierOperation::nothing;
      break;
    default:
      return false;
  }
  MicroOp op;
  if (!address(list[place], mnemonic(instruction).space, op)) return false;
  if (number < list.size() && list[number].kind != OperandKind::sink) {
    const Source n = source(list[number], number_type);
    made.number = n.slot;
    made.number_uniform = n.uniform;
    made.number_bytes = number_type == Type::b64 ? 8 : 4;
    made.has_number = true;
  }
  if (has_result && list[0].kind != OperandKind::sink) {
    const Register d = destination(list[0]);
    if (d.uniform) return false;
    made.result = d.slot;
    made.result_width = d.width;
    made.has_result = true;
  }
  op.run = async_ops::barrier_word;
  op.instruction = instruction_;
  op.bytes = 8;
  op.flags |= memory_volatile;
  op.aux = &made;
  note_access(AccessKind::atomic, 8, AddressKind::shared);
  program_->code.push_back(op);
  return true;
}

}  // namespace demarc::emulate
