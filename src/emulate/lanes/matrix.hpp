// The steps of a matrix product, compiled once for each instruction set. Matrices are arrays of
// doubles, row by row, and `pitch` says how many there are from one row to the next.
#pragma once

#include <cstddef>
#include <cstdint>

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
  s32,
  count
};

struct ProductSize {
  unsigned m = 0;  // a multiple of 8
  unsigned n = 0;  // a multiple of 8
  unsigned k = 0;
};

// How sums of floating-point products are rounded; numbers are powers of two. See matrix_sums.inl.
struct SumRule {
  // The least exponent of each type: that of its denormal numbers.
  double least_a = 0x1p-14;
  double least_b = 0x1p-14;
  double least_c = 0x1p-126;
  unsigned block = 0;     // products along k that are summed at once
  double scale = 0x1p25;  // what is kept below the largest exponent
  double unit = 0x1p-23;  // the last place of a sum of f32 between 1 and 2
  bool to_f16 = false;    // else to f32
};

// What the four lanes of a group hold in one register.
inline constexpr unsigned tile_rows = 8;
inline constexpr unsigned tile_columns = 8;

// Of single bits a number is a word of 32 of them.
struct MatrixSteps {
  // Numbers that follow each other; of whole words.
  using Widen = void (*)(const void* from, unsigned count, double* to);
  using Narrow = void (*)(const double* from, unsigned count, void* to);
  // Eight times the numbers of four registers, `stride` bytes apart: as rows, or each as a column.
  using Read = void (*)(const std::byte* from, std::size_t stride, double* to, unsigned pitch);
  // Eight rows and columns of sums. A lane has two numbers that follow each other in a row: in one
  // register, or where they fill it in two.
  using ReadSums = void (*)(const std::byte* const* registers, double* to, unsigned pitch);
  using WriteSums = void (*)(const double* from, unsigned pitch, std::byte* const* registers);
  // sums[m][n] += a[m][k] * b[k][n].
  using AddProducts = void (*)(const ProductSize& size, const SumRule& rule, const double* a,
                               const double* b, double* sums);

  static constexpr auto types = static_cast<std::size_t>(MatrixType::count);
  Widen widen[types] = {};
  Read rows[types] = {};
  Read columns[types] = {};
  ReadSums read_sums[types] = {};
  Narrow narrow[types] = {};
  WriteSums write_sums[types] = {};
  Narrow narrow_saturated = nullptr;  // to s32
  WriteSums write_saturated = nullptr;
  AddProducts add_whole = nullptr;    // of whole numbers
  AddProducts add_fused = nullptr;    // of doubles: each product rounded together with the sum
  AddProducts add_aligned = nullptr;  // as tensor cores sum a block at once
  AddProducts add_halves = nullptr;   // the same in two halves, as mma sums 8-bit numbers
  AddProducts add_in_turn = nullptr;  // one product after the other in f32
  AddProducts add_common_bits = nullptr;
  AddProducts add_different_bits = nullptr;
};

}  // namespace demarc::emulate
