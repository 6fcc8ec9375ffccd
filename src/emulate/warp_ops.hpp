// Micro-ops between the lanes of a warp: shuffles, votes, matches, reductions and matrix products.
#pragma once

#include "machine.hpp"

namespace demarc::emulate {

enum class WarpOperation : std::uint8_t {
  shuffle_up,
  shuffle_down,
  shuffle_butterfly,
  shuffle_index,
  vote_all,
  vote_any,
  vote_uniform,
  vote_ballot,
  match_any,
  match_all,
  active_mask,
  elect,
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor
};

struct WarpDetails {
  WarpOperation operation = WarpOperation::active_mask;
  std::uint32_t slot[4] = {};
  bool uniform[4] = {};
  std::uint8_t width = 4;  // of the data
  bool negated = false;    // predicate source of a vote
  bool is_signed = false;
  bool has_predicate = false;  // second destination, a predicate
  std::uint32_t predicate = 0;
  bool has_result = true;
};

enum class MatrixType : std::uint8_t { f16, bf16, tf32, f32, f64, s8, u8, s32 };

struct MatrixDetails {
  unsigned m = 0;
  unsigned n = 0;
  unsigned k = 0;
  MatrixType a_type = MatrixType::f16;
  MatrixType b_type = MatrixType::f16;
  MatrixType c_type = MatrixType::f32;
  MatrixType d_type = MatrixType::f32;
  bool saturate = false;
  std::uint32_t d[8] = {};
  std::uint32_t a[8] = {};
  std::uint32_t b[8] = {};
  std::uint32_t c[8] = {};
  bool c_uniform[8] = {};
};

namespace warp_ops {
const MicroOp* exchange(Warp& w, const MicroOp* op);     // aux: WarpDetails
const MicroOp* multiply(Warp& w, const MicroOp* op);     // aux: MatrixDetails
const MicroOp* move_matrix(Warp& w, const MicroOp* op);  // movmatrix .trans: d, a
}  // namespace warp_ops

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
// Elements a lane holds; 0 when the shape is not covered.
[[nodiscard]] unsigned elements_of_a(const MatrixDetails& shape);
[[nodiscard]] unsigned elements_of_b(const MatrixDetails& shape);
[[nodiscard]] unsigned matrix_bits(MatrixType type);

}  // namespace demarc::emulate
