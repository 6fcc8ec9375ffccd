// One function for each kind of instruction. It returns whether it covers the instruction; where it
// does not, the next one for the same kind is asked. One that does may still fail the instruction
// later, through an operand (Emitter::fail).
#pragma once

#include "lower/function.hpp"
#include "lower/instruction_view.hpp"

namespace demarc::emulate {

// Picks among the functions below, and wraps a guarded instruction. What none covers is refused.
void lower_instruction(FunctionContext& f, const InstructionView& instruction);

// The instruction may look at memory until another block changes it.
void note_polls(FunctionContext& f, const InstructionView& instruction, AddressKind place);

// Arithmetic, logic and moves.
bool lower_integer(FunctionContext& f, const InstructionView& instruction);
bool lower_float(FunctionContext& f, const InstructionView& instruction);
bool lower_packed_integer(FunctionContext& f, const InstructionView& instruction);
bool lower_bits(FunctionContext& f, const InstructionView& instruction);
bool lower_logic(FunctionContext& f, const InstructionView& instruction);
bool lower_predicate_logic(FunctionContext& f, const InstructionView& instruction);
bool lower_compare(FunctionContext& f, const InstructionView& instruction);
bool lower_select(FunctionContext& f, const InstructionView& instruction);
bool lower_video(FunctionContext& f, const InstructionView& instruction);
bool lower_video_parts(FunctionContext& f, const InstructionView& instruction);
bool lower_convert(FunctionContext& f, const InstructionView& instruction);
bool lower_move(FunctionContext& f, const InstructionView& instruction);
bool lower_permute(FunctionContext& f, const InstructionView& instruction);
bool lower_address_move(FunctionContext& f, const InstructionView& instruction);
bool lower_hint(FunctionContext& f, const InstructionView& instruction);

// Memory.
// Whether the access acquires or releases.
void note_order(FunctionContext& f, const InstructionView& instruction, MicroOp& op);
bool lower_load(FunctionContext& f, const InstructionView& instruction);
bool lower_store(FunctionContext& f, const InstructionView& instruction);
bool lower_wide_access(FunctionContext& f, const InstructionView& instruction);
bool lower_wide_move(FunctionContext& f, const InstructionView& instruction);
bool lower_atomic(FunctionContext& f, const InstructionView& instruction);
bool lower_async(FunctionContext& f, const InstructionView& instruction);
bool lower_bulk_copy(FunctionContext& f, const InstructionView& instruction);
bool lower_tensor_copy(FunctionContext& f, const InstructionView& instruction);
bool lower_texture(FunctionContext& f, const InstructionView& instruction);
bool lower_surface(FunctionContext& f, const InstructionView& instruction);
bool lower_image_query(FunctionContext& f, const InstructionView& instruction);
bool lower_mbarrier(FunctionContext& f, const InstructionView& instruction);
// Each lane takes `bytes` off those that the barrier waits for: .mbarrier::complete_tx::bytes.
bool complete_transfer(FunctionContext& f, const InstructionView& instruction,
                       const ptx::Operand& barrier, std::uint32_t bytes);

// Between the lanes of a warp.
bool lower_warp(FunctionContext& f, const InstructionView& instruction);
bool lower_matrix_access(FunctionContext& f, const InstructionView& instruction);
bool lower_matrix_product(FunctionContext& f, const InstructionView& instruction);
bool lower_fragment(FunctionContext& f, const InstructionView& instruction);
bool lower_warpgroup(FunctionContext& f, const InstructionView& instruction);

// What runs next.
bool lower_branch(FunctionContext& f, const InstructionView& instruction);
bool lower_leave(FunctionContext& f, const InstructionView& instruction);
bool lower_trap(FunctionContext& f, const InstructionView& instruction);
bool lower_call(FunctionContext& f, const InstructionView& instruction);
bool lower_barrier(FunctionContext& f, const InstructionView& instruction);

}  // namespace demarc::emulate
