// Micro-ops that decide what runs next: branches with reconvergence, guards, calls, barriers.
#pragma once

#include "machine.hpp"

namespace demarc::emulate::control {

// Predicate operand: frame offset a, flags bit 0: negated.
const MicroOp* guard(
    Warp& w, const MicroOp* op);  // narrows the mask to the predicate; skips to target when empty
const MicroOp* unguard(Warp& w, const MicroOp* op);  // restores it
const MicroOp* jump(Warp& w, const MicroOp* op);     // all lanes to target
const MicroOp* branch(
    Warp& w, const MicroOp* op);  // lanes with the predicate to target, join = reconvergence
const MicroOp* branch_index(
    Warp& w, const MicroOp* op);  // aux: std::vector<uint32_t> targets; a: index register
const MicroOp* join(Warp& w, const MicroOp* op);  // a reconvergence point
const MicroOp* exit_lanes(Warp& w,
                          const MicroOp* op);  // flags bit 1: only lanes with the predicate
const MicroOp* return_lanes(Warp& w, const MicroOp* op);  // the same, from a function
// Whether a call hands over places of the sizes and alignments that are declared.
[[nodiscard]] bool fit(const std::vector<FrameVariable>& handed,
                       const std::vector<FrameVariable>& declared);
const MicroOp* call(Warp& w, const MicroOp* op);  // aux: CallDetails
const MicroOp* call_indirect(Warp& w,
                             const MicroOp* op);  // the same; a: 64-bit register with the address
const MicroOp* barrier(Warp& w,
                       const MicroOp* op);  // a: id slot, b: thread count slot or none, flags below
const MicroOp* trap(Warp& w, const MicroOp* op);
const MicroOp* nothing(Warp& w, const MicroOp* op);

inline constexpr std::uint8_t flag_negated = 1;
inline constexpr std::uint8_t flag_conditional = 2;
inline constexpr std::uint8_t barrier_has_count = 1;
inline constexpr std::uint8_t barrier_arrive_only = 2;
inline constexpr std::uint8_t barrier_reduces =
    4;  // c: predicate, d: result, width: 0 popc, 1 and, 2 or
inline constexpr std::uint8_t barrier_negated = 8;

const MicroOp* read_tid(Warp& w, const MicroOp* op);  // imm: dimension; d: vector slot of u32
const MicroOp* read_block_index(Warp& w, const MicroOp* op);  // imm: dimension; d: uniform slot
const MicroOp* read_special(Warp& w, const MicroOp* op);   // imm: ptx::SpecialRegister; bytes: of d
const MicroOp* local_address(Warp& w, const MicroOp* op);  // d (uniform slot) = local base + imm

// Predicate registers, whole masks at once. d = a op b under the mask; flags bits 0/1 negate a/b.
const MicroOp* pred_and(Warp& w, const MicroOp* op);
const MicroOp* pred_or(Warp& w, const MicroOp* op);
const MicroOp* pred_xor(Warp& w, const MicroOp* op);

}  // namespace demarc::emulate::control
