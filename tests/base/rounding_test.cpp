// Tests division that rounds up, up to the largest numbers.
#include "demarc/base/rounding.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <limits>

namespace demarc {
namespace {

TEST(Rounding, is_exact_at_multiples_and_one_more_behind_them) {
  EXPECT_EQ(ceil_div(0U, 4U), 0U);
  EXPECT_EQ(ceil_div(8U, 4U), 2U);
  EXPECT_EQ(ceil_div(9U, 4U), 3U);
  EXPECT_EQ(round_up(0U, 4U), 0U);
  EXPECT_EQ(round_up(8U, 4U), 8U);
  EXPECT_EQ(round_up(9U, 4U), 12U);
  EXPECT_EQ(round_up(std::uint64_t{7}, 1U), 7U);
}

TEST(Rounding, of_the_largest_numbers_does_not_wrap) {
  constexpr auto largest = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(ceil_div(largest, 2U), std::uint64_t{1} << 63U);
  EXPECT_EQ(ceil_div(largest, largest), 1U);
  EXPECT_EQ(round_up(largest, 1U), largest);
}

RC_GTEST_PROP(Rounding, gives_the_least_multiple_that_is_not_below,
              (std::uint32_t count, std::uint16_t piece)) {
  RC_PRE(piece != 0);
  const std::uint64_t wide = count;
  const std::uint64_t up = round_up(wide, piece);
  RC_ASSERT(up % piece == 0);
  RC_ASSERT(up >= wide && up - wide < piece);
  RC_ASSERT(ceil_div(wide, piece) * piece == up);
}

}  // namespace
}  // namespace demarc
