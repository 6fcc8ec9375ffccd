// Free ranges are given out by first fit and joined again, whatever comes in which order.
#include "demarc/base/free_ranges.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace demarc {
namespace {

using Ranges = FreeRanges<std::uint64_t>;

TEST(FreeRanges, the_first_range_with_room_is_cut_from_its_front) {
  Ranges free(10, 14);
  free.put(20, 30);
  EXPECT_EQ(free.take(5), 20U);
  EXPECT_EQ(free.take(4), 10U);
  EXPECT_EQ(free.longest(), 5U);
  EXPECT_EQ(free.take(6), std::nullopt);
  EXPECT_EQ(free.take(5), 25U);
  EXPECT_EQ(free.longest(), 0U);
  EXPECT_EQ(free.take(1), std::nullopt);
}

TEST(FreeRanges, room_may_be_asked_for_from_a_number_on) {
  Ranges free(0, 10);
  EXPECT_EQ(free.take(3, 4), 4U);
  EXPECT_EQ(free.longest(), 4U) << "what lies below stays free";
  EXPECT_EQ(free.take(3, 8), std::nullopt);
  EXPECT_EQ(free.take(1, 10), std::nullopt);
  EXPECT_EQ(free.take(4, 0), 0U);
  EXPECT_EQ(free.take(3, 5), 7U);
}

TEST(FreeRanges, what_meets_is_joined_on_both_sides) {
  Ranges free(0, 3);
  free.put(5, 8);
  EXPECT_EQ(free.longest(), 3U);
  free.put(3, 5);
  EXPECT_EQ(free.longest(), 8U);
  free.put(9, 9);
  free.put(9, 8);
  EXPECT_EQ(free.longest(), 8U);
  free.put(8, 12);
  EXPECT_EQ(free.take(12), 0U);
}

TEST(FreeRanges, the_last_number_of_all_can_be_free) {
  constexpr std::uint64_t last = ~std::uint64_t{0};
  Ranges free(last - 4, last);
  EXPECT_EQ(free.take(5), std::nullopt);
  EXPECT_EQ(free.take(last, 1), std::nullopt);
  EXPECT_EQ(free.take(4), last - 4);
}

// A set of single numbers is the model.
RC_GTEST_PROP(FreeRanges, are_those_that_a_set_of_numbers_has, ()) {
  constexpr std::uint64_t count = 24;
  std::set<std::uint64_t> model;
  Ranges free;
  for (int step = 0; step < 60; ++step) {
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, count);
    const auto length = *rc::gen::inRange<std::uint64_t>(1, 6);
    const auto has = [&](std::uint64_t first, bool wanted) {
      for (std::uint64_t i = first; i < first + length; ++i) {
        if (model.contains(i) != wanted) return false;
      }
      return true;
    };
    if (*rc::gen::arbitrary<bool>()) {
      if (!has(begin, false)) continue;
      for (std::uint64_t i = begin; i < begin + length; ++i) model.insert(i);
      free.put(begin, begin + length);
      continue;
    }
    std::optional<std::uint64_t> expected;
    for (std::uint64_t first = begin; first < count + 6 && !expected; ++first) {
      if (has(first, true)) expected = first;
    }
    RC_ASSERT(free.take(length, begin) == expected);
    for (std::uint64_t i = 0; expected && i < length; ++i) model.erase(*expected + i);
  }
}

}  // namespace
}  // namespace demarc
