// Tests ranks, null spaces and solutions over GF(2), also on synthetic systems.
#include "demarc/base/gf2.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace demarc {
namespace {

TEST(Gf2, row_basis_of_dependent_rows_has_their_rank) {
  const std::vector<std::uint64_t> rows{0b0110, 0b0011, 0b0101};
  EXPECT_EQ(gf2_rank(rows), 2U);
  EXPECT_EQ(gf2_row_basis(rows), (std::vector<std::uint64_t>{0b0101, 0b0011}));
}

TEST(Gf2, no_row_of_a_basis_has_the_leading_bit_of_another) {
  const std::uint64_t top = std::uint64_t{1} << 63;
  const std::vector<std::uint64_t> rows{top | 0b1100, 0b0110, 0b0001, 0b0110, top | 0b0010};
  EXPECT_EQ(gf2_row_basis(rows),
            (std::vector<std::uint64_t>{top | 0b0010, 0b1000, 0b0110, 0b0001}));
}

TEST(Gf2, null_space_stays_within_the_given_columns) {
  const std::vector<std::uint64_t> rows{0b1100};
  EXPECT_EQ(gf2_null_space(rows, 0b1101), (std::vector<std::uint64_t>{0b1100, 0b0001}));
}

TEST(Gf2, spaces_are_the_same_by_what_they_span) {
  const std::vector<std::uint64_t> a{0b0110, 0b0011};
  EXPECT_TRUE(gf2_same_space(a, std::vector<std::uint64_t>{0b0101, 0b0110, 0b0011}));
  EXPECT_FALSE(gf2_same_space(a, std::vector<std::uint64_t>{0b0101}));
  EXPECT_FALSE(gf2_same_space(a, std::vector<std::uint64_t>{0b1001, 0b0011}));
  EXPECT_TRUE(gf2_same_space({}, std::vector<std::uint64_t>{0}));
}

TEST(Gf2, a_solution_stays_within_the_given_columns) {
  const std::vector<std::uint64_t> rows{0b1100, 0b0111};
  const std::vector<std::uint8_t> right{1, 0};
  const auto found = gf2_solve(rows, right, 0b0101);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 0b0101U);
  EXPECT_FALSE(gf2_solve(rows, right, 0b0011));
}

TEST(Gf2, without_rows_anything_is_a_solution_and_the_least_is_taken) {
  EXPECT_EQ(gf2_solve({}, {}, ~0ULL), 0U);
}

TEST(Gf2, solve_says_when_there_is_no_solution) {
  const std::vector<std::uint64_t> rows{0b1, 0b1};
  EXPECT_FALSE(gf2_solve(rows, std::vector<std::uint8_t>{0, 1}, ~0ULL).has_value());
}

RC_GTEST_PROP(Gf2, rank_and_nullity_add_up_and_null_vectors_annihilate_rows,
              (const std::vector<std::uint64_t>& rows, std::uint64_t columns)) {
  const auto null = gf2_null_space(rows, columns);
  std::vector<std::uint64_t> restricted;
  for (const auto row : rows) restricted.push_back(row & columns);
  RC_ASSERT(null.size() + gf2_rank(restricted) == static_cast<std::size_t>(std::popcount(columns)));
  for (const auto vector : null) {
    RC_ASSERT((vector & ~columns) == 0);
    for (const auto row : rows) RC_ASSERT(parity(row, vector) == 0);
  }
}

RC_GTEST_PROP(Gf2, solve_finds_a_vector_with_the_planted_parities,
              (const std::vector<std::uint64_t>& rows, std::uint64_t planted)) {
  std::vector<std::uint8_t> right;
  for (const auto row : rows) right.push_back(static_cast<std::uint8_t>(parity(row, planted)));
  const auto found = gf2_solve(rows, right, ~0ULL);
  RC_ASSERT(found.has_value());
  for (std::size_t i = 0; i < rows.size(); ++i) RC_ASSERT(parity(rows[i], *found) == right[i]);
}

}  // namespace
}  // namespace demarc
