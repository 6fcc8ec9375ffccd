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
  EXPECT_FALSE(windows_by_side(sides, 4, 2)) << "one path a side";
  sides[20] = 0;
  EXPECT_FALSE(windows_by_side(sides, 2, 6)) << "a side of two runs";
}

// Three stacks of 24 remainders have 8 each. If there are 23, two stacks have at least 15, and the
// third one begins at 16 or before.
TEST(RemainderOrder, thirds_have_two_stacks_each_whichever_of_them_are_the_larger_ones) {
  std::vector<std::uint32_t> sides(47, 1);
  for (std::uint32_t i = 40; i < 63; ++i) sides[i % 47] = 0;
  const auto thirds = windows_by_side(sides, 3, 6).value();
  ASSERT_EQ(thirds.size(), 3U);
  EXPECT_EQ(thirds[0].first, 40U);
  EXPECT_EQ(thirds[0].count, 15U);
  EXPECT_EQ(thirds[1].first, (40U + 16) % 47);
  EXPECT_EQ(thirds[1].count, 7U + 8);
  EXPECT_EQ(thirds[2].first, (40U + 23 + 8) % 47);
  EXPECT_EQ(thirds[2].count, 16U);
  // Twelve stacks of 47 remainders: 23 are 4, 4, 4, 4, 4, 3 in some order, 24 are 4 each.
  const auto fine = windows_by_side(sides, 3, 12).value();
  EXPECT_EQ(fine[0].count, 15U);
  EXPECT_EQ(fine[1].first, (40U + 16) % 47);
  EXPECT_EQ(fine[1].count, 7U + 8);
  EXPECT_EQ(fine[2].count, 16U);
}

TEST(RemainderOrder, parts_have_whole_paths_of_their_own) {
  for (const auto& [parts, paths] : {std::pair{2U, 2U}, {2U, 6U}, {3U, 6U}, {4U, 4U}, {4U, 6U}}) {
    EXPECT_TRUE(check_remainder_parts(parts, paths)) << parts << " of " << paths;
  }
  for (const auto& [parts, paths] :
       {std::pair{1U, 6U}, {2U, 3U}, {3U, 4U}, {3U, 9U}, {4U, 2U}, {4U, 7U}, {5U, 10U}, {6U, 6U}}) {
    const auto refused = check_remainder_parts(parts, paths);
    ASSERT_FALSE(refused) << parts << " of " << paths;
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_EQ(windows_by_side(std::vector<std::uint32_t>(47, 0), parts, paths).error().message,
              refused.error().message);
  }
}

}  // namespace
}  // namespace demarc::color
