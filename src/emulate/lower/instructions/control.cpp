// Branches, returns, exits and traps.
#include "ops/control.hpp"

#include "lower/instructions.hpp"
#include "lower/register_parameters.hpp"

namespace demarc::emulate {

using ptx::Opcode;

namespace {

bool lower_indexed_branch(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.is_guarded() || instruction[1].base != ptx::Base::targets) return false;
  const Source index = f.operands.source(instruction[0], ptx::Type::u32);
  std::vector<std::uint32_t> blocks;
  for (const std::uint32_t label : f.function.body.targets[instruction[1].index].targets)
    blocks.push_back(f.branches.block_of_label(label));
  MicroOp& op = f.branches.branch_index(f.branches.block_of(instruction.index()), blocks);
  op.a = index.slot.offset;
  op.uniform = uniform_bits(index);
  return true;
}

}  // namespace

bool lower_branch(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.opcode() == Opcode::brx_idx) return lower_indexed_branch(f, instruction);
  if (instruction.opcode() != Opcode::bra || instruction[0].base != ptx::Base::label) return false;
  const std::uint32_t to = f.branches.block_of_label(instruction[0].index);
  if (!instruction.is_guarded()) {
    f.branches.jump(to);
    return true;
  }
  const Source predicate = f.operands.guard(instruction);
  MicroOp& op = f.branches.branch(f.branches.block_of(instruction.index()), to);
  op.a = predicate.slot.offset;
  op.flags = predicate.negated ? control::flag_negated : std::uint8_t{0};
  return true;
}

bool lower_leave(FunctionContext& f, const InstructionView& instruction) {
  const bool returns = instruction.opcode() == Opcode::ret;
  if (!returns && instruction.opcode() != Opcode::exit) return false;
  if (returns) give_results(f);
  const bool leaves_kernel = f.function.is_entry || !returns;
  MicroOp& op = f.code.emit(leaves_kernel ? control::exit_lanes : control::return_lanes);
  if (!instruction.is_guarded()) return true;
  const Source predicate = f.operands.guard(instruction);
  op.a = predicate.slot.offset;
  op.flags = static_cast<std::uint8_t>(control::flag_conditional |
                                       (predicate.negated ? control::flag_negated : 0));
  return true;
}

bool lower_trap(FunctionContext& f, const InstructionView& instruction) {
  if (instruction.opcode() != Opcode::trap && instruction.opcode() != Opcode::brkpt) return false;
  f.code.emit(control::trap);
  return true;
}

}  // namespace demarc::emulate
