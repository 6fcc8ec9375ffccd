// Micro-ops on memory other than plain loads and stores.
#pragma once

#include "machine.hpp"

namespace demarc::emulate {

enum class AtomicKind : std::uint8_t {
  add,
  min,
  max,
  inc,
  dec,
  exch,
  cas,
  bit_and,
  bit_or,
  bit_xor
};
enum class AtomicType : std::uint8_t {
  b32,
  b64,
  u32,
  u64,
  s32,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64,
  b16
};

struct AtomicDetails {
  AtomicKind kind = AtomicKind::add;
  AtomicType type = AtomicType::u32;
  static constexpr std::uint32_t sink = ~std::uint32_t{0};
  // For each element (MicroOp::count of them): the operand and the result, or sink.
  std::uint32_t b[8] = {};
  std::uint32_t d[8] = {sink, sink, sink, sink, sink, sink, sink, sink};
  bool b_uniform[8] = {};
  std::uint32_t c = 0;  // of a compare-and-swap
  bool c_uniform = false;
};

struct AsyncDetails {
  MicroOp destination;  // shared, a memory micro-op of its own
  std::uint32_t bytes = 16;
  bool has_source_bytes = false;
  std::uint32_t source_bytes = 0;  // slot
  bool source_bytes_uniform = false;
};

// ldmatrix and stmatrix: eight row addresses per matrix, 16 bytes per row.
struct MatrixAccessDetails {
  std::uint32_t slots[4] = {};
  unsigned matrices = 1;
  bool transposed = false;
};

namespace memory_ops {
const MicroOp* atomic(Warp& w, const MicroOp* op);  // aux: AtomicDetails
// 16-byte registers: d or b is the register's slot.
const MicroOp* load_wide(Warp& w, const MicroOp* op);
const MicroOp* store_wide(Warp& w, const MicroOp* op);
const MicroOp* move_wide(Warp& w, const MicroOp* op);  // d = a
const MicroOp* join_wide(Warp& w, const MicroOp* op);  // d = {a, b}; uniform bits for a, b
const MicroOp* split_wide(Warp& w,
                          const MicroOp* op);  // {b, c} = a; flags bits 0, 1: b, c is thrown away
const MicroOp* copy_async(Warp& w, const MicroOp* op);  // aux: AsyncDetails
// `bytes` of every lane from a (c bytes a lane; uniform: one for all) to d (b bytes a lane).
const MicroOp* copy_lanes(Warp& w, const MicroOp* op);
// `b` bytes of every lane between the frame (at a, c bytes a lane) and the function's local memory
// (at imm).
const MicroOp* frame_to_local(Warp& w, const MicroOp* op);
const MicroOp* local_to_frame(Warp& w, const MicroOp* op);
const MicroOp* load_matrix(Warp& w, const MicroOp* op);  // aux: MatrixAccessDetails
const MicroOp* store_matrix(Warp& w, const MicroOp* op);
}  // namespace memory_ops

[[nodiscard]] std::uint64_t atomic_value(AtomicKind kind, AtomicType type, std::uint64_t old,
                                         std::uint64_t b, std::uint64_t c, bool flush);

}  // namespace demarc::emulate
