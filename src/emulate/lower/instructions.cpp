// Chooses the function that lowers an instruction, and applies its guard.
#include "lower/instructions.hpp"

#include <algorithm>

#include "groups.hpp"
#include "lower/approximations.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OpcodeGroup;

namespace {

struct InstructionRow {
  OpcodeGroup group;
  bool (*lower)(FunctionContext& f, const InstructionView& instruction);
};

// Those of a group are asked from the top.
constexpr std::array<InstructionRow, 42> instruction_rows{{
    // clang-format off
    {OpcodeGroup::arithmetic, lower_integer},
    {OpcodeGroup::arithmetic, lower_packed_integer},
    {OpcodeGroup::arithmetic, lower_float},
    {OpcodeGroup::arithmetic, lower_bits},
    {OpcodeGroup::compare,    lower_select},
    {OpcodeGroup::compare,    lower_compare},
    {OpcodeGroup::logic,      lower_predicate_logic},
    {OpcodeGroup::logic,      lower_logic},
    {OpcodeGroup::move,       lower_wide_move},
    {OpcodeGroup::move,       lower_move},
    {OpcodeGroup::move,       lower_permute},
    {OpcodeGroup::move,       lower_address_move},
    {OpcodeGroup::convert,    lower_convert},
    {OpcodeGroup::video,      lower_video},
    {OpcodeGroup::video,      lower_video_parts},
    {OpcodeGroup::cache,      lower_hint},
    {OpcodeGroup::fence,      lower_hint},
    {OpcodeGroup::misc,       lower_hint},
    {OpcodeGroup::misc,       lower_trap},
    {OpcodeGroup::load,       lower_wide_access},
    {OpcodeGroup::load,       lower_load},
    {OpcodeGroup::store,      lower_wide_access},
    {OpcodeGroup::store,      lower_store},
    {OpcodeGroup::atomic,     lower_atomic},
    {OpcodeGroup::async,      lower_async},
    {OpcodeGroup::async,      lower_bulk_copy},
    {OpcodeGroup::async,      lower_tensor_copy},
    {OpcodeGroup::async,      lower_mbarrier},
    {OpcodeGroup::texture,    lower_texture},
    {OpcodeGroup::texture,    lower_surface},
    {OpcodeGroup::texture,    lower_image_query},
    {OpcodeGroup::mbarrier,   lower_mbarrier},
    {OpcodeGroup::warp,       lower_warp},
    {OpcodeGroup::matrix,     lower_matrix_access},
    {OpcodeGroup::matrix,     lower_matrix_product},
    {OpcodeGroup::matrix,     lower_fragment},
    {OpcodeGroup::matrix,     lower_warpgroup},
    {OpcodeGroup::branch,     lower_branch},
    {OpcodeGroup::exit,       lower_leave},
    {OpcodeGroup::exit,       lower_trap},
    {OpcodeGroup::call,       lower_call},
    {OpcodeGroup::barrier,    lower_barrier},
    // clang-format on
}};

void lower_by_table(FunctionContext& f, const InstructionView& instruction) {
  const bool covered =
      std::any_of(instruction_rows.begin(), instruction_rows.end(), [&](const InstructionRow& row) {
        return row.group == instruction.group() && row.lower(f, instruction);
      });
  if (!covered || f.code.failed()) {
    f.kernel.refusals.add(instruction.written(),
                          "a form of this instruction that the emulator does not cover");
  }
}

// Who sees to it that lanes whose predicate is not set take no part.
enum class Guard : std::uint8_t {
  none,
  mask,     // a guard around the micro-ops narrows the mask
  branch,   // a branch around them: they need the mask as it is, or stop the warp
  apart,    // the same, and only the lanes that execute them count them
  own_flag  // the micro-op reads the predicate
};

// Whether all threads of the warp execute it together.
bool is_in_step(const InstructionView& instruction) {
  return instruction.group() == OpcodeGroup::matrix;
}

// Whether lanes wait there for others.
bool waits_for_lanes(const InstructionView& instruction) {
  return is_in_step(instruction) ||
         (instruction.group() == OpcodeGroup::warp && instruction.has("sync"));
}

Guard guard_of(const InstructionView& instruction) {
  if (!instruction.is_guarded()) return Guard::none;
  switch (instruction.opcode()) {
    case Opcode::bra:
    case Opcode::brx_idx:
    case Opcode::ret:
    case Opcode::exit:
      return Guard::own_flag;
    case Opcode::trap:
    case Opcode::brkpt:
    case Opcode::call:
      return Guard::branch;
    default:
      if (instruction.group() == OpcodeGroup::barrier) return Guard::branch;
      return waits_for_lanes(instruction) ? Guard::apart : Guard::mask;
  }
}

void lower_under_mask(FunctionContext& f, const InstructionView& instruction) {
  const Source predicate = f.operands.guard(instruction);
  const OpIndex guard = f.code.next();
  MicroOp& op = f.code.emit(control::guard);
  op.a = predicate.slot.offset;
  op.flags = predicate.negated ? control::flag_negated : std::uint8_t{0};
  lower_by_table(f, instruction);
  f.code.emit(control::unguard);
  // Where no lane is left the guard restores the mask itself.
  f.code[guard].target = static_cast<std::uint32_t>(f.code.next());
}

void lower_in_step(FunctionContext& f, const InstructionView& instruction) {
  if (is_in_step(instruction)) {
    f.code.close_run();
    f.code.emit(control::step).flags = control::step_together;
  }
  f.code.count_in_run();
  lower_by_table(f, instruction);
}

template <class Lower>
void lower_behind_branch(FunctionContext& f, const InstructionView& instruction, Lower&& body) {
  const Source predicate = f.operands.guard(instruction);
  const OpIndex around = f.code.next();
  MicroOp& op = f.code.emit(control::branch);
  op.a = predicate.slot.offset;
  op.flags = predicate.negated ? std::uint8_t{0} : control::flag_negated;
  body(f, instruction);
  const auto join = static_cast<std::uint32_t>(f.code.next());
  f.code[around].target = join;
  f.code[around].join = join;
  f.code.emit(control::join);
}

// Whether it may change which micro-op is next, or stop the warp, for lanes other than those that
// wait for others.
bool ends_run(const InstructionView& instruction) {
  switch (instruction.group()) {
    case OpcodeGroup::branch:
    case OpcodeGroup::exit:
    case OpcodeGroup::call:
    case OpcodeGroup::barrier:
      return true;
    default:
      return instruction.opcode() == Opcode::brkpt || is_in_step(instruction);
  }
}

}  // namespace

void note_polls(FunctionContext& f, const InstructionView& instruction, AddressKind place) {
  const bool global = place == AddressKind::global || place == AddressKind::generic;
  if (global && f.branches.is_in_loop(f.branches.block_of(instruction.index())))
    f.kernel.program.polls = true;
}

void lower_instruction(FunctionContext& f, const InstructionView& instruction) {
  f.code.begin(instruction.index());
  if (!instruction.words().understood || instruction.opcode() == Opcode::unknown) {
    f.kernel.refusals.add(instruction.written(), "an instruction that the emulator does not cover");
    return;
  }
  note_approximation(f.kernel, instruction);
  const Guard guard = guard_of(instruction);
  if (guard == Guard::mask) {
    f.code.close_run();
    lower_under_mask(f, instruction);
    return;
  }
  if (guard == Guard::apart) {
    f.code.close_run();
    lower_behind_branch(f, instruction, lower_in_step);
    f.code.close_run();
  } else if (guard == Guard::branch) {
    f.code.count_in_run();
    lower_behind_branch(f, instruction, lower_by_table);
  } else {
    lower_in_step(f, instruction);
  }
  if (ends_run(instruction)) {
    f.code.close_run();
  } else if (guard == Guard::none && waits_for_lanes(instruction)) {
    f.code.part_run();
  }
}

}  // namespace demarc::emulate
