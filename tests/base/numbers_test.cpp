#include "demarc/base/numbers.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace demarc {
namespace {

TEST(Numbers, trailing_text_is_an_error_that_names_the_option) {
  const auto result = parse_u64("12x", "--tpcs");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "--tpcs: '12x' is not a whole number");
}

TEST(Numbers, out_of_range_is_said_so) {
  const auto result = parse_u64("99999999999999999999", "--seed");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "--seed: '99999999999999999999' is out of range");
}

TEST(Numbers, index_list_is_sorted_and_without_repetition) {
  EXPECT_EQ(*parse_index_list("8,0-2,1", 65, "--tpcs"), (std::vector<std::uint32_t>{0, 1, 2, 8}));
}

TEST(Numbers, index_list_refuses_what_is_not_a_list) {
  for (const char* text : {"", ",", "1,", "3-1", "1-", "-1", "70", "1 2", "a"}) {
    EXPECT_FALSE(parse_index_list(text, 65, "--tpcs")) << text;
  }
}

RC_GTEST_PROP(Numbers, decimal_and_hexadecimal_round_trip, (std::uint64_t value)) {
  RC_ASSERT(*parse_u64(fmt::format("{}", value), "x") == value);
  RC_ASSERT(*parse_u64(fmt::format("{:#x}", value), "x") == value);
}

}  // namespace
}  // namespace demarc
