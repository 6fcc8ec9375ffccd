// Solves linear systems over GF(2) by Gauss-Jordan elimination: bases, ranks, null spaces.
#include "demarc/base/gf2.hpp"

#include <array>

namespace demarc {
namespace {

// The reduced row echelon form of the rows that were added: each row leads with its highest bit,
// and no other row has that bit. A row is an equation, parity(word & x) = right.
class Echelon {
 public:
  void add(std::uint64_t word, bool right = false) {
    Row row{word, right};
    for (std::uint64_t rest = word & leading_; rest != 0; rest &= rest - 1) {
      row.add(rows_[index_of(rest)]);
    }
    if (row.word == 0) {
      contradicts_ = contradicts_ || row.right;
      return;
    }
    const std::uint64_t lead = std::bit_floor(row.word);
    for (std::uint64_t rest = leading_; rest != 0; rest &= rest - 1) {
      Row& other = rows_[index_of(rest)];
      if ((other.word & lead) != 0) other.add(row);
    }
    leading_ |= lead;
    rows_[index_of(lead)] = row;
  }

  // Highest leading bit first.
  [[nodiscard]] std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> words;
    for (std::uint64_t rest = leading_; rest != 0; rest &= ~std::bit_floor(rest)) {
      words.push_back(rows_[index_of(std::bit_floor(rest))].word);
    }
    return words;
  }

  // The solution whose bits are 0 but for leading ones; none if two equations contradict each
  // other.
  [[nodiscard]] std::optional<std::uint64_t> solution() const {
    if (contradicts_) return std::nullopt;
    std::uint64_t solution = 0;
    for (std::uint64_t rest = leading_; rest != 0; rest &= rest - 1) {
      if (rows_[index_of(rest)].right) solution |= rest & (~rest + 1);
    }
    return solution;
  }

 private:
  struct Row {
    std::uint64_t word = 0;
    bool right = false;
    void add(const Row& other) {
      word ^= other.word;
      right = right != other.right;
    }
  };

  // The number of the lowest bit.
  static std::size_t index_of(std::uint64_t word) {
    return static_cast<std::size_t>(std::countr_zero(word));
  }

  std::array<Row, 64> rows_{};  // by their leading bits
  std::uint64_t leading_ = 0;
  bool contradicts_ = false;
};

}  // namespace

std::vector<std::uint64_t> gf2_row_basis(std::span<const std::uint64_t> rows) {
  Echelon echelon;
  for (const auto row : rows) echelon.add(row);
  return echelon.words();
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
  Echelon echelon;
  for (std::size_t r = 0; r < rows.size(); ++r) echelon.add(rows[r] & columns, (right[r] & 1) != 0);
  return echelon.solution();
}

}  // namespace demarc
