// Linear algebra over GF(2) on 64-bit words: a hash bit of an address map is the parity of (address
// & mask). Vectors are masks whose bit i is coordinate i.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace demarc {

// X(...) of the papers: the XOR of the bits of `value` that `mask` selects.
constexpr unsigned parity(std::uint64_t value, std::uint64_t mask) {
  return static_cast<unsigned>(std::popcount(value & mask)) & 1U;
}

// A basis in reduced row echelon form, highest leading bit first.
[[nodiscard]] std::vector<std::uint64_t> gf2_row_basis(std::span<const std::uint64_t> rows);

[[nodiscard]] std::size_t gf2_rank(std::span<const std::uint64_t> rows);

// A basis (reduced row echelon form) of { m : parity(row & m) = 0 for all rows }. m has only bits
// of `columns`.
[[nodiscard]] std::vector<std::uint64_t> gf2_null_space(std::span<const std::uint64_t> rows,
                                                        std::uint64_t columns);

// True when both span the same space.
[[nodiscard]] bool gf2_same_space(std::span<const std::uint64_t> a,
                                  std::span<const std::uint64_t> b);

// Some x within `columns` with parity(rows[i] & x) = bit i of `right`, or nothing if there is none.
[[nodiscard]] std::optional<std::uint64_t> gf2_solve(std::span<const std::uint64_t> rows,
                                                     std::span<const std::uint8_t> right,
                                                     std::uint64_t columns);

}  // namespace demarc
