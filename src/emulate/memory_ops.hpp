// Micro-ops on memory other than plain loads and stores.
#pragma once

#include "machine.hpp"

namespace demarc::emulate {

enum class AtomicKind : std::uint8_t { add, min, max, inc, dec, exch, cas, and_, or_, xor_ };
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
  bool has_result = false;
  std::uint32_t b = 0;  // operand slots of the element
  std::uint32_t c = 0;
  bool b_uniform = false;
  bool c_uniform = false;
  bool flush = false;
};

struct AsyncDetails {
  MicroOp destination;  // shared, a memory micro-op of its own
  std::uint32_t bytes = 16;
  bool has_source_bytes = false;
  std::uint32_t source_bytes = 0;  // slot
  bool source_bytes_uniform = false;
};

// ldmatrix and stmatrix: eight row addresses a matrix, 16 bytes a row.
struct MatrixAccessDetails {
  std::uint32_t slots[4] = {};
  unsigned matrices = 1;
  bool transposed = false;
};

namespace memory_ops {
const MicroOp* atomic(Warp& w, const MicroOp* op);       // d: result; aux: AtomicDetails
const MicroOp* copy_async(Warp& w, const MicroOp* op);   // aux: AsyncDetails
const MicroOp* load_matrix(Warp& w, const MicroOp* op);  // aux: MatrixAccessDetails
const MicroOp* store_matrix(Warp& w, const MicroOp* op);
}  // namespace memory_ops

[[nodiscard]] std::uint64_t atomic_value(AtomicKind kind, AtomicType type, std::uint64_t old,
                                         std::uint64_t b, std::uint64_t c, bool flush);

}  // namespace demarc::emulate
