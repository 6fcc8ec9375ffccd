// Colours of parts and numbers of SMs, as a study names them.
#include <gtest/gtest.h>

#include "number_ranges.hpp"
#include "part_colors.hpp"
#include "sms.hpp"

namespace demarc::study {
namespace {

using Numbers = std::vector<std::uint32_t>;

TEST(PartColors, are_the_chosen_ones_then_the_parts_own_numbers) {
  EXPECT_EQ(colors_of_parts(4, 3, {}).value(), (Numbers{0, 1, 2}));
  EXPECT_EQ(colors_of_parts(4, 3, Numbers{3}).value(), (Numbers{3, 1, 2}));
  EXPECT_EQ(colors_of_parts(2, 2, Numbers{0, 2}).error().message,
            "--colors: part 1 has colour 2, but the memory has colours 0 to 1");
  EXPECT_FALSE(colors_of_parts(2, 3, {}));
}

TEST(NumberRanges, join_what_follows_each_other) {
  EXPECT_EQ(number_ranges(test::sm_list({0, 1, 2, 5})), "0-2, 5");
  EXPECT_EQ(number_ranges(test::sm_list({7})), "7");
  EXPECT_EQ(number_ranges({}), "");
}

}  // namespace
}  // namespace demarc::study
