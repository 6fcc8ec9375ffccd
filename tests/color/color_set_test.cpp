// Tests sets of colours: what they hold, in how many colours they are counted, and what two of them
// share.
#include "demarc/color/color_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace demarc::color {
namespace {

using testing::HasSubstr;

TEST(ColorSets, hold_the_colours_of_their_bits) {
  const ColorSet set(0b1101, 4);
  EXPECT_EQ(set.size(), 3U);
  EXPECT_TRUE(set.contains(0));
  EXPECT_FALSE(set.contains(1));
  EXPECT_FALSE(set.contains(64));
  EXPECT_EQ(list_of(set), "0,2,3");
  EXPECT_EQ(to_string(set), "0,2,3 of 4");
  EXPECT_EQ(ColorSet::run(2, 2, 8), ColorSet(0b1100, 8));
  EXPECT_EQ(ColorSet::run(0, 64, 64).members(), ~std::uint64_t{0});
  EXPECT_TRUE(ColorSet::run(3, 0, 8).empty());
}

TEST(ColorSets, are_well_formed_with_a_colour_and_none_beyond_the_last) {
  EXPECT_TRUE(ColorSet(0b1000, 4).is_well_formed());
  EXPECT_TRUE(ColorSet(std::uint64_t{1} << 63U, 64).is_well_formed());
  EXPECT_FALSE(ColorSet(0b10000, 4).is_well_formed());
  EXPECT_FALSE(ColorSet(0, 4).is_well_formed());
  EXPECT_FALSE(ColorSet().is_well_formed());
  EXPECT_FALSE(ColorSet(1, 65).is_well_formed());
}

TEST(ColorSets, are_counted_in_finer_and_in_coarser_divisions) {
  EXPECT_EQ(ColorSet(0b01, 2).counted_in(2).value(), ColorSet(0b01, 2));
  EXPECT_EQ(ColorSet(0b10, 2).counted_in(8).value(), ColorSet(0b11110000, 8));
  EXPECT_EQ(ColorSet(0b101, 4).counted_in(8).value(), ColorSet(0b00110011, 8));
  EXPECT_EQ(ColorSet(0b11110000, 8).counted_in(2).value(), ColorSet(0b10, 2));
  EXPECT_EQ(ColorSet(0b11, 2).counted_in(1).value(), ColorSet(1, 1));
}

TEST(ColorSets, that_are_no_whole_number_of_others_are_refused) {
  EXPECT_THAT(ColorSet(0b0111, 4).counted_in(2).error().message,
              HasSubstr("colours 0,1,2 of 4 are no whole number of 2 colours"));
  EXPECT_FALSE(ColorSet(1, 3).counted_in(4));
  EXPECT_FALSE(ColorSet(1, 64).counted_in(128));
  EXPECT_FALSE(ColorSet(1, 2).counted_in(0));
  EXPECT_FALSE(ColorSet(0b100, 2).counted_in(4));
  EXPECT_FALSE(ColorSet(0, 2).counted_in(4));
}

TEST(ColorSets, share_colours_whatever_they_are_counted_in) {
  EXPECT_EQ(ColorSet(0b01, 2).common(ColorSet(0b0110, 4)), ColorSet(0b0010, 4));
  EXPECT_TRUE(ColorSet(0b01, 2).common(ColorSet(0b1100, 4)).empty());
  EXPECT_TRUE(ColorSet(0b1100, 4).common(ColorSet(0b01, 2)).empty());
  EXPECT_EQ(ColorSet(0b1100, 4).common(ColorSet(0b10, 2)), ColorSet(0b1100, 4));
  EXPECT_TRUE(ColorSet(0b01, 2).common(ColorSet()).empty());
  EXPECT_TRUE(ColorSet().common(ColorSet(0b01, 2)).empty());
  EXPECT_FALSE(ColorSet(1, 2).common(ColorSet(0b100, 3)).empty())
      << "they may have colours in common";
}

RC_GTEST_PROP(ColorSets, are_the_same_there_and_back, (std::uint64_t members)) {
  const auto of = std::uint32_t{1} << *rc::gen::inRange(0U, 5U);
  const auto finer = of << *rc::gen::inRange(0U, 2U);
  const ColorSet set(members & ColorSet::run(0, of, of).members(), of);
  RC_PRE(!set.empty());
  const auto there = set.counted_in(finer);
  RC_ASSERT(there.has_value());
  RC_ASSERT(there->size() == set.size() * (finer / of));
  RC_ASSERT(there->counted_in(of).value() == set);
}

}  // namespace
}  // namespace demarc::color
