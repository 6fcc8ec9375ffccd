// Solves linear systems over GF(2) by M4RI: bases, ranks, null spaces.
#include "demarc/base/gf2.hpp"

#include <m4ri/m4ri.h>

#include <memory>
#include <mutex>

namespace demarc {
namespace {

// M4RI keeps freed matrices and blocks in tables of its own, which Debian builds without locks: one
// thread at a time may make, use or free a matrix.
std::mutex& m4ri_mutex() {
  static std::mutex mutex;
  return mutex;
}

struct FreeMatrix {
  void operator()(mzd_t* matrix) const { mzd_free(matrix); }
};
using Matrix = std::unique_ptr<mzd_t, FreeMatrix>;

constexpr int word_bits = 64;

// Column c of the matrix holds bit 63 - c, so that echelon form leads with the highest bit.
int column_of_bit(int bit) {
  return word_bits - 1 - bit;
}

Matrix to_matrix(std::span<const std::uint64_t> rows, int extra_columns = 0) {
  Matrix matrix(mzd_init(static_cast<rci_t>(rows.size()), word_bits + extra_columns));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::uint64_t rest = rows[r]; rest != 0; rest &= rest - 1) {
      mzd_write_bit(matrix.get(), static_cast<rci_t>(r), column_of_bit(std::countr_zero(rest)), 1);
    }
  }
  return matrix;
}

std::uint64_t row_word(const mzd_t* matrix, rci_t row) {
  std::uint64_t word = 0;
  for (int bit = 0; bit < word_bits; ++bit) {
    if (mzd_read_bit(matrix, row, column_of_bit(bit)) != 0) word |= std::uint64_t{1} << bit;
  }
  return word;
}

}  // namespace

std::vector<std::uint64_t> gf2_row_basis(std::span<const std::uint64_t> rows) {
  std::vector<std::uint64_t> basis;
  if (rows.empty()) return basis;
  const std::lock_guard lock(m4ri_mutex());
  const Matrix matrix = to_matrix(rows);
  const rci_t rank = mzd_echelonize(matrix.get(), 1);
  for (rci_t r = 0; r < rank; ++r) basis.push_back(row_word(matrix.get(), r));
  return basis;
}

std::size_t gf2_rank(std::span<const std::uint64_t> rows) {
  return gf2_row_basis(rows).size();
}

std::vector<std::uint64_t> gf2_null_space(std::span<const std::uint64_t> rows,
                                          std::uint64_t columns) {
  std::vector<std::uint64_t> restricted;
  for (const auto row : rows) {
    if ((row & columns) != 0) restricted.push_back(row & columns);
  }
  const auto basis = gf2_row_basis(restricted);
  std::uint64_t pivots = 0;
  for (const auto row : basis) pivots |= std::bit_floor(row);
  // Each free column gives one vector: itself plus the pivots of the rows that contain it.
  std::vector<std::uint64_t> null;
  for (std::uint64_t rest = columns & ~pivots; rest != 0; rest &= rest - 1) {
    const std::uint64_t free_bit = rest & (~rest + 1);
    std::uint64_t vector = free_bit;
    for (const auto row : basis) {
      if ((row & free_bit) != 0) vector |= std::bit_floor(row);
    }
    null.push_back(vector);
  }
  return gf2_row_basis(null);
}

bool gf2_same_space(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  return gf2_row_basis(a) == gf2_row_basis(b);
}

std::optional<std::uint64_t> gf2_solve(std::span<const std::uint64_t> rows,
                                       std::span<const std::uint8_t> right, std::uint64_t columns) {
  if (rows.empty()) return 0;
  std::vector<std::uint64_t> restricted(rows.begin(), rows.end());
  for (auto& row : restricted) row &= columns;
  const std::lock_guard lock(m4ri_mutex());
  const Matrix matrix = to_matrix(restricted, 1);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    mzd_write_bit(matrix.get(), static_cast<rci_t>(r), word_bits, right[r] & 1);
  }
  const rci_t rank = mzd_echelonize(matrix.get(), 1);
  std::uint64_t solution = 0;
  for (rci_t r = 0; r < rank; ++r) {
    const std::uint64_t word = row_word(matrix.get(), r);
    if (word == 0) return std::nullopt;
    if (mzd_read_bit(matrix.get(), r, word_bits) != 0) solution |= std::bit_floor(word);
  }
  return solution;
}

}  // namespace demarc
