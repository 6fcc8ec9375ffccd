// Tests that pages are ordered by remainder, and that colours lie on one side.
#include "demarc/color/remainder_order.hpp"

#include <gtest/gtest.h>

namespace demarc::color {
namespace {

TEST(RemainderOrder, pages_are_put_in_the_order_of_their_remainders) {
  RemainderModel model;
  model.hash = h200_remainders();
  // A page of 1024 numbers: 37 more each time, modulo 47.
  std::vector<PageRemainder> pages;
  for (const std::uint32_t remainder : {27U, 0U, 37U, 27U, 5U}) pages.push_back({0, remainder, 1});
  pages.push_back({0, 17, 0.3});  // in doubt
  EXPECT_EQ(order_by_remainder(model, pages), (std::vector<std::uint32_t>{1, 2, 0}));
}

TEST(RemainderOrder, colours_are_runs_of_remainders_on_one_side) {
  std::vector<std::uint32_t> sides(47, 1);
  for (std::uint32_t i = 40; i < 64; ++i) sides[i % 47] = 0;
  const auto halves = windows_by_side(sides, 2, 6);
  ASSERT_TRUE(halves);
  EXPECT_EQ((*halves)[0].first, 40U);
  EXPECT_EQ((*halves)[0].count, 24U);
  EXPECT_EQ((*halves)[1].first, 17U);
  EXPECT_EQ((*halves)[1].count, 23U);
  const auto quarters = windows_by_side(sides, 4, 6);
  ASSERT_TRUE(quarters);
  // Among three stacks of 8 remainders the middle one is left out; of 8, 8 and 7 a little more.
  EXPECT_EQ((*quarters)[0].first, 40U);
  EXPECT_EQ((*quarters)[0].count, 8U);
  EXPECT_EQ((*quarters)[1].first, 9U);
  EXPECT_EQ((*quarters)[2].first, 17U);
  EXPECT_EQ((*quarters)[3].first, 33U);
  EXPECT_EQ((*quarters)[3].count, 7U);
  EXPECT_FALSE(windows_by_side(sides, 3, 6));
  EXPECT_FALSE(windows_by_side(sides, 4, 2)) << "one path a side";
  sides[20] = 0;
  EXPECT_FALSE(windows_by_side(sides, 2, 6)) << "a side of two runs";
}

}  // namespace
}  // namespace demarc::color
