// Matrix products of a warp: mma with the fragments of the PTX ISA, and wmma with fragments of our
// own (the ISA leaves theirs open).
#pragma once

#include "machine.hpp"

namespace demarc::emulate {

enum class MatrixType : std::uint8_t {
  f16,
  bf16,
  tf32,
  f32,
  f64,
  e4m3,
  e5m2,
  s8,
  u8,
  s4,
  u4,
  b1,
  s32
};

struct MatrixDetails {
  unsigned m = 0;
  unsigned n = 0;
  unsigned k = 0;
  MatrixType a_type = MatrixType::f16;
  MatrixType b_type = MatrixType::f16;
  MatrixType c_type = MatrixType::f32;
  MatrixType d_type = MatrixType::f32;
  bool saturate = false;
  bool exclusive = false;    // b1: .xor.popc, else .and.popc
  bool a_by_column = false;  // m8n8k4 of f16
  bool b_by_row = false;
  std::uint32_t d[8] = {};
  std::uint32_t a[8] = {};
  std::uint32_t b[8] = {};
  std::uint32_t c[8] = {};
  bool c_uniform[8] = {};
};

// wmma.load and wmma.store of one fragment.
struct FragmentDetails {
  MicroOp part;  // a memory micro-op of one element a lane
  unsigned rows = 0;
  unsigned columns = 0;
  bool by_column = false;
  MatrixType type = MatrixType::f16;
  unsigned registers = 0;
  std::uint32_t slots[8] = {};
  std::uint32_t scratch = 0;  // slot of 32 addresses
  bool has_stride = false;    // in elements; else the matrix is packed
  bool stride_uniform = false;
  std::uint32_t stride = 0;
};

namespace matrix_ops {
const MicroOp* multiply(Warp& w, const MicroOp* op);            // aux: MatrixDetails
const MicroOp* multiply_quads(Warp& w, const MicroOp* op);      // the same, m8n8k4 of f16
const MicroOp* multiply_fragments(Warp& w, const MicroOp* op);  // the same, wmma
const MicroOp* load_fragment(Warp& w, const MicroOp* op);       // aux: FragmentDetails
const MicroOp* store_fragment(Warp& w, const MicroOp* op);
}  // namespace matrix_ops

// Row and column of element `i` that `lane` holds of a fragment; see the figures of PTX
// ISA 9.7.14.5.
struct FragmentPlace {
  unsigned row;
  unsigned column;
};
[[nodiscard]] FragmentPlace place_in_a(const MatrixDetails& shape, unsigned lane, unsigned i);
[[nodiscard]] FragmentPlace place_in_b(const MatrixDetails& shape, unsigned lane,
                                       unsigned i);  // row: k, column: n
[[nodiscard]] FragmentPlace place_in_c(unsigned lane, unsigned i);
[[nodiscard]] double matrix_value(std::uint64_t bits, MatrixType type);
// The bits of an element of d.
[[nodiscard]] std::uint64_t matrix_result(double sum, MatrixType type, bool saturate);
// Element `i` that `lane` holds of a fragment whose registers stand in `slots`; `uniform`: those
// that are the same in all lanes, or null.
[[nodiscard]] std::uint64_t fragment_bits(Warp& w, const std::uint32_t* slots, const bool* uniform,
                                          MatrixType type, unsigned lane, unsigned i);
void set_fragment_bits(Warp& w, const std::uint32_t* slots, MatrixType type, unsigned lane,
                       unsigned i, std::uint64_t value);
// Whether mma has that shape for the type of a.
[[nodiscard]] bool is_product_shape(const MatrixDetails& shape);
[[nodiscard]] bool is_fragment_shape(const MatrixDetails& shape);  // ... and wmma
[[nodiscard]] unsigned matrix_bits(MatrixType type);
// 32-bit registers (f64: 64-bit ones) that hold `elements`.
[[nodiscard]] unsigned registers_for(unsigned elements, MatrixType type);

}  // namespace demarc::emulate
