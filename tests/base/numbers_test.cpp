// Tests that only whole texts within range are numbers or lists of indices.
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

TEST(Numbers, only_whole_finite_texts_are_numbers) {
  EXPECT_EQ(*parse_double("-2.5e3", "x"), -2500.0);
  for (const char* text : {"", "1x", "x", "inf", "-inf", "nan", "1e999", " 1", "1 "}) {
    EXPECT_FALSE(parse_double(text, "x")) << text;
  }
  EXPECT_EQ(parse_double("1x", "--sms").error().message, "--sms: '1x' is not a finite number");
}

TEST(Numbers, percentages_are_read_with_and_without_their_sign) {
  for (const char* text : {"2.5", "2.5%", "2.5 %"})
    EXPECT_EQ(*parse_percent(text, "x"), 2.5) << text;
  EXPECT_EQ(*parse_percent("0%", "x"), 0);
  EXPECT_EQ(*parse_percent("150%", "x"), 150);
  for (const char* text :
       {"", "%", " %", "5%%", "5  %", "5 ", "5% ", "-1%", "-0.5", "x%", "inf%"}) {
    EXPECT_FALSE(parse_percent(text, "x")) << text;
  }
  EXPECT_EQ(parse_percent("half", "--limit").error().message,
            "--limit: 'half' is not a percentage; write it as 50% or 2.5%");
}

TEST(Numbers, signs_and_bases_are_read) {
  EXPECT_EQ(*parse_i64("-9223372036854775808", "x"), INT64_MIN);
  EXPECT_FALSE(parse_i64("9223372036854775808", "x"));
  EXPECT_EQ(*parse_u64("0X1f", "x"), 31U);
  for (const char* text : {"-1", "0x", "0xg", "+1", ""}) EXPECT_FALSE(parse_u64(text, "x")) << text;
}

TEST(Numbers, bytes_are_counted_in_units_of_1024) {
  EXPECT_EQ(*parse_bytes("4096", "x"), 4096U);
  EXPECT_EQ(*parse_bytes("0x10", "x"), 16U);
  EXPECT_EQ(*parse_bytes("3KiB", "x"), 3072U);
  EXPECT_EQ(*parse_bytes("4M", "x"), 4U << 20U);
  EXPECT_EQ(*parse_bytes("2 MiB", "x"), 2U << 20U);
  EXPECT_EQ(*parse_bytes("5 G", "x"), std::uint64_t{5} << 30U);
  EXPECT_EQ(*parse_bytes("8388607 TiB", "x"), std::uint64_t{8388607} << 40U);
  for (const char* wrong : {"", "GiB", "iB", "4iB", "1 GB", "4m", "1.5 GiB", "-1", "1  GiB", "1 ",
                            "8388608 TiB", "9223372036854775808", "99999999999999999999"}) {
    EXPECT_FALSE(parse_bytes(wrong, "x")) << wrong;
  }
  EXPECT_EQ(parse_bytes("1 GB", "--bytes").error().message,
            "--bytes: '1 GB' is not a number of bytes; write it as 4096, 64K, 512 MiB or 16GiB");
}

TEST(Numbers, index_list_is_sorted_and_without_repetition) {
  EXPECT_EQ(*parse_index_list("8,0-2,1", 65, "--tpcs"), (std::vector<std::uint32_t>{0, 1, 2, 8}));
}

TEST(Numbers, index_list_refuses_what_is_not_a_list) {
  for (const char* text : {"", ",", "1,", "3-1", "1-", "-1", "70", "1 2", "a"}) {
    EXPECT_FALSE(parse_index_list(text, 65, "--tpcs")) << text;
  }
  EXPECT_TRUE(parse_index_list("65,3-3", 65, "--tpcs"));
  EXPECT_EQ(parse_index_list("66", 65, "--tpcs").error().message,
            "--tpcs: 66 is above the highest index, 65");
  EXPECT_EQ(parse_index_list("3-1", 65, "--tpcs").error().message, "--tpcs: '3-1' runs backwards");
}

RC_GTEST_PROP(Numbers, decimal_and_hexadecimal_round_trip, (std::uint64_t value)) {
  RC_ASSERT(*parse_u64(fmt::format("{}", value), "x") == value);
  RC_ASSERT(*parse_u64(fmt::format("{:#x}", value), "x") == value);
}

}  // namespace
}  // namespace demarc
