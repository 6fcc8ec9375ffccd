// Tests that expressions follow the precedence of C, and that errors name the column.
#include "expression.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace demarc::gpu {
namespace {

const Variables sample_variables{{"n", 1000}, {"k", 3}};

std::string failure_of(std::string_view text) {
  const auto value = evaluate(text, sample_variables, "x.json");
  return value ? "" : value.error().message;
}

TEST(Expression, follows_the_precedence_of_c) {
  const auto value = [](std::string_view text) {
    return evaluate(text, sample_variables, "x").value_or(-999);
  };
  EXPECT_EQ(value("2+3*4"), 14);
  EXPECT_EQ(value("(2+3)*4"), 20);
  EXPECT_EQ(value("1 << k + 1"), 16);
  EXPECT_EQ(value("-n/7 % 5"), -2);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("0x10 + n"), 1016);
  EXPECT_EQ(value("ceil_div(n, 256)"), 4);
  EXPECT_EQ(value("round_up(n+2, 16)"), 1008);
  EXPECT_EQ(value("log2(n) + sqrt(n) + min(k, 2) + max(k, 2)"), 9 + 31 + 2 + 3);
}

TEST(Expression, errors_name_the_place_and_the_column) {
  EXPECT_EQ(failure_of("4*m"), "x.json: '4*m': there is no parameter 'm'; known are: k, n");
  EXPECT_EQ(failure_of("4*"),
            "x.json: '4*': a number, a parameter or '(' was expected at column 3");
  EXPECT_EQ(failure_of("(4"), "x.json: '(4': ')' was expected at column 3");
  EXPECT_EQ(failure_of("4 4"), "x.json: '4 4': unexpected text at column 3");
  EXPECT_EQ(failure_of("n/0"), "x.json: 'n/0': division by zero at column 4");
  EXPECT_EQ(failure_of("9223372036854775807+1"),
            "x.json: '9223372036854775807+1': overflow at column 22");
  EXPECT_EQ(failure_of("1 << 63"),
            "x.json: '1 << 63': a shift by 0 to 62 was expected at column 8");
  EXPECT_EQ(failure_of("cube(3)"),
            "x.json: 'cube(3)': no function of that name takes these arguments at column 8");
  EXPECT_NE(failure_of(std::string(10000, '(')).find("nested too deeply"), std::string::npos);
}

TEST(Expression, limits_are_where_they_are_said_to_be) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"0 << 3", "0"},
      {"1 << 62", "4611686018427387904"},
      {"2 << 62", "overflow"},
      {"-1 << 1", "overflow"},
      {"5 >> 62", "0"},
      {"1 << -1", "a shift by 0 to 62"},
      {"-8 >> 1", "-4"},
      {"9223372036854775807 - -1", "overflow"},
      {"9223372036854775807 * 2", "overflow"},
      {"-9223372036854775807 - 1", "-9223372036854775808"},
      {"-(-9223372036854775807 - 1)", "overflow"},
      {"(-9223372036854775807 - 1) / -1", "overflow"},
      {"(-9223372036854775807 - 1) % -1", "overflow"},
      {"(-9223372036854775807 - 1) / 1", "-9223372036854775808"},
      {"5 / -1", "-5"},
      {"7 % 0", "division by zero"},
      {"log2(1)", "0"},
      {"log2(0)", "no function"},
      {"sqrt(0)", "0"},
      {"sqrt(-1)", "no function"},
      {"min(3, 3)", "3"},
      {"max(-1, 1)", "1"},
      {"ceil_div(0, 5)", "0"},
      {"ceil_div(5, 0)", "no function"},
      {"ceil_div(-1, 5)", "no function"},
      {"ceil_div(5, 1)", "5"},
      {"round_up(2305843009213693951, 1)", "2305843009213693951"},
      {"round_up(2305843009213693952, 1)", "no function"},
      {"round_up(1, 2305843009213693952)", "no function"},
      {"min(1, 2, 3)", "no function"},
      {"k_", "there is no parameter 'k_'"},
      {"", "a number, a parameter or '(' was expected at column 1"},
  };
  for (const auto& [text, expected] : cases) {
    const auto value = evaluate(text, sample_variables, "x");
    if (value)
      EXPECT_EQ(std::to_string(*value), expected) << text;
    else
      EXPECT_NE(value.error().message.find(expected), std::string::npos) << value.error().message;
  }
  const auto nested = [](std::size_t deep) {
    return std::string(deep, '(') + "1" + std::string(deep, ')');
  };
  EXPECT_EQ(failure_of(nested(63)), "");
  EXPECT_NE(failure_of(nested(64)).find("nested too deeply"), std::string::npos);
  EXPECT_EQ(failure_of(nested(60) + "+" + nested(60)), "");
}

RC_GTEST_PROP(Expression, adds_and_multiplies_as_integers_do,
              (std::int32_t a, std::int32_t b, std::int32_t c)) {
  const auto text = fmt::format("a + {}*c", b);
  const auto value = evaluate(text, {{"a", a}, {"c", c}}, "x");
  RC_ASSERT(value.has_value());
  RC_ASSERT(*value == a + std::int64_t{b} * c);
}

RC_GTEST_PROP(Expression, any_text_gives_a_value_or_an_error, (std::string text)) {
  const auto value = evaluate(text, sample_variables, "x");
  // Outside of RC_ASSERT, whose || asks for both sides.
  const bool told = value.has_value() || value.error().message.starts_with("x: ");
  RC_ASSERT(told);
}

}  // namespace
}  // namespace demarc::gpu
