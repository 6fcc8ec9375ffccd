// Tests the values and types of constant expressions, as ptxas 13 gives them, and where they may
// stand.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "demarc/ptx/initialiser.hpp"
#include "demarc/ptx/printer.hpp"
#include "text.hpp"

namespace demarc::ptx::test {
namespace {

Operand constant(const std::string& expression) {
  const Module module = parsed(kernel("mov.b64 %rd1, " + expression + ";"));
  const Body& body = module.find_function("k")->body;
  return body.operands_of(body.instructions.at(0))[1];
}

bool is_malformed(const std::string& text) {
  return parse(text, "t.ptx").diagnostics.malformed > 0;
}
bool is_malformed_constant(const std::string& expression) {
  return is_malformed(kernel("mov.b64 %rd1, " + expression + ";"));
}

struct Row {
  std::string expression;
  std::uint64_t value;
};

void expect_values(ImmediateKind kind, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Operand operand = constant(row.expression);
    EXPECT_EQ(operand.value, row.value) << row.expression;
    EXPECT_EQ(operand.immediate, kind) << row.expression;
  }
}

TEST(Constants, complement_and_remainder_are_unsigned_and_all_else_is_if_an_operand_is) {
  expect_values(ImmediateKind::u64, {{"~63 >> 32", 0xFFFFFFFF},
                                     {"-7 % 3", 0},
                                     {"-5 % -3", ~4ULL},
                                     {"~1 / 2", ~0ULL >> 1U},
                                     {"(7 % 3)-2", ~0ULL},
                                     {"(0-7)/3U", 0x5555555555555553},
                                     {"(WARP_SZ&1U)-2", ~1ULL},
                                     {"(-8U)>>1", 0x7FFFFFFFFFFFFFFC},
                                     {"(1 ? 1U : 1)-2", ~0ULL},
                                     {"(.u64)-1 >> 60", 15},
                                     {"9223372036854775808 / -1", 0},
                                     {"0xffffffffffffffff", ~0ULL},
                                     {"12U", 12}});
}

TEST(Constants, comparisons_and_logic_are_signed_and_shifts_are_as_their_left_operand) {
  expect_values(ImmediateKind::s64, {{"-7 / 2", ~2ULL},
                                     {"(1U == 1U) - 2", ~0ULL},
                                     {"(1U && 2) - 2", ~0ULL},
                                     {"!0U - 2", ~0ULL},
                                     {"-8 >> 1U", ~3ULL},
                                     {"1 << 200", 256},
                                     {"1 << -1", 1ULL << 63U},
                                     {"(.s64)~0 >> 60", ~0ULL},
                                     {"(1 ? 1 : 1U) - 2", ~0ULL},
                                     {"-1 < 0U", 0},
                                     {"-1 < 0", 1},
                                     {"1-2 < 0", 1},
                                     {"1U-2 < 0", 0},
                                     {"3 >= 3 == (2 <= 1) + 1", 1},
                                     {"1 != 1 || 2 > 1", 1},
                                     {"(1.0 < 2.0) - 2", ~0ULL},
                                     {"WARP_SZ - 33", ~0ULL},
                                     {"017 + 0b11 + 0xA", 28}});
}

TEST(Constants, digits_wrap_around_until_a_digit_follows_a_number_whose_top_bit_is_set) {
  expect_values(
      ImmediateKind::s64,
      {{"18446744073709551617", 1}, {"0x10000000000000001", 1}, {"02000000000000000000001", 1}});
  expect_values(ImmediateKind::u64,
                {{"0x1ffffffffffffffff", ~0ULL}, {"36893488147419103231", ~0ULL}});
  EXPECT_TRUE(is_malformed_constant("99999999999999999999"));
  EXPECT_TRUE(is_malformed_constant("0xfffffffffffffffff"));
}

TEST(Constants, floating_point_numbers_are_added_subtracted_multiplied_divided_and_compared) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  expect_values(ImmediateKind::f64, {{"(3.0*2.5-1.0)/4.0", bits(1.625)},
                                     {"1.0/3.0", bits(1.0 / 3.0)},
                                     {"-(1.5) + 0d3ff0000000000000", bits(-0.5)},
                                     {"+1.5", bits(1.5)},
                                     {"1e300*1e300", bits(1e300 * 1e300)},
                                     {"0e999", 0},
                                     {".5 + 1.", bits(1.5)}});
  expect_values(ImmediateKind::s64, {{"1.5 == 1.5", 1},
                                     {"1.5 != 1.5", 0},
                                     {"2.5 > 1.5", 1},
                                     {"1.5 <= 1.4", 0},
                                     {"1.5 >= 1.5", 1}});
}

TEST(Constants, what_ptxas_refuses_in_an_expression_is_malformed) {
  for (const std::string expression : {"1/0",
                                       "1 % 0",
                                       "1/(2-2)",
                                       "1.5/0.0",
                                       "1.5/-0.0",
                                       "(0-0x7fffffffffffffff-1)/-1",
                                       "1.5+1",
                                       "1 < 1.5",
                                       "1.5 % 1.0",
                                       "1.5 && 1.5",
                                       "1.5 << 1.0",
                                       "~1.5",
                                       "!1.5",
                                       "(.s64)1.5",
                                       "(.u32)5",
                                       "1 ? 1.5 : 2.5",
                                       "1.5 ? 1 : 2",
                                       "-0f3f800000",
                                       "0f3f800000 + 1.0",
                                       "7%3",
                                       "7 %WARP_SZ",
                                       "1e400",
                                       "1e-310",
                                       "1.5e-400",
                                       "1.5f",
                                       "09",
                                       "0x",
                                       "0b2",
                                       "1u",
                                       "-tile"}) {
    EXPECT_TRUE(is_malformed_constant(expression)) << expression;
  }
  EXPECT_FALSE(is_malformed_constant("7 % 3"));
  EXPECT_FALSE(is_malformed(kernel("mov.b32 %r1, (0f3f800000);")));
}

TEST(Constants, the_least_signed_number_keeps_its_type_when_it_is_printed) {
  const std::string line = "mov.b64 %rd1, (.s64)9223372036854775808;";
  const Module module = parsed(kernel(line));
  const Function& function = *module.find_function("k");
  EXPECT_EQ(print(module, function, function.body.instructions.at(0)), line);
}

TEST(Constants, an_offset_is_one_expression_that_is_added) {
  const Module module =
      parsed(kernel("ld.global.u32 %r1, [%rd1+WARP_SZ*4-1<<1];\n"
                    "mov.u64 %rd1, tile+4-8;\n"
                    "ld.local.u32 %r1, [WARP_SZ+4];"));
  const Body& body = module.find_function("k")->body;
  const auto operand = [&](std::size_t i) { return body.operands_of(body.instructions.at(i))[1]; };
  EXPECT_EQ(operand(0).value, 254U);
  EXPECT_EQ(operand(1).offset(), -4);
  EXPECT_EQ(operand(2).value, 36U);
  for (const std::string address :
       {"%rd1-4", "%rd1- -4", "tile-4", "%rd1+4.0", "%rd1+tile", "1.0"}) {
    EXPECT_TRUE(is_malformed(kernel("ld.global.u32 %r1, [" + address + "];"))) << address;
  }
}

TEST(Constants, sizes_alignments_and_counts_are_literals_or_the_size_of_a_warp) {
  const Module module = parsed(preamble +
                               ".global .align WARP_SZ .u32 a[WARP_SZ][0x2];\n"
                               ".visible .entry k() .reqntid WARP_SZ, 2U {\n"
                               ".reg .b32 %r<WARP_SZ>; mov.b32 %r31, 0; ret; }\n");
  EXPECT_EQ(module.variables.at(0).byte_size(), 256U);
  EXPECT_EQ(module.variables.at(0).alignment(), 32U);
  EXPECT_EQ(module.functions.at(0).directives.at(0).values, (std::vector<std::uint64_t>{32, 2}));
  for (const std::string declaration :
       {".global .u32 a[2*2];", ".global .u32 a[(3)];", ".global .u32 a[-1];",
        ".global .u32 a[1.0];", ".global .align 4*2 .u32 a;", ".global .align 3 .u32 a;",
        ".visible .entry k() .reqntid 32*2 {ret;}",
        ".visible .entry k() { .reg .b32 %r<1+1>; ret; }"}) {
    EXPECT_TRUE(is_malformed(preamble + declaration)) << declaration;
  }
}

TEST(Initialisers, an_element_takes_the_constants_of_its_type) {
  const auto image = [](const std::string& declaration) {
    const Module module = parsed(preamble + declaration);
    const auto bytes = initial_image(module, module.variables.back()).value().bytes;
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i > 0; --i) {
      value = value << 8U | static_cast<unsigned char>(bytes[i - 1]);
    }
    return value;
  };
  EXPECT_EQ(image(".global .f64 a = 0f3f800001;"), 0x3F800001U);
  EXPECT_EQ(image(".global .f32 a = 1.5;"), 0x3FC00000U);
  EXPECT_EQ(image(".global .b32 a = 1.5 + 1.0;"), 0x40200000U);
  EXPECT_EQ(image(".global .b64 a = 1.5;"), 0x3FF8000000000000U);
  EXPECT_EQ(image(".global .b16 a = 1.1;"), 0x999AU);
  EXPECT_EQ(image(".global .u8 a[2] = {-1, WARP_SZ};"), 0x20FFU);
  EXPECT_EQ(image(".const .u32 a = 1 < 2;"), 1U);
  for (const std::string declaration :
       {".global .f32 a = 1;", ".global .f64 a = WARP_SZ;", ".global .u32 a = 1.5;",
        ".global .s64 a = 0f3f800000;", ".global .f16 a = 0;", ".global .u32 a = 1.0 && 2.0;"}) {
    EXPECT_TRUE(is_malformed(preamble + declaration)) << declaration;
  }
}

TEST(Initialisers, braces_follow_the_dimensions_and_hold_at_most_their_values) {
  for (const std::string declaration :
       {".global .u64 a = {1};", ".global .u64 a[1] = 1;", ".global .u64 a[2] = {1, 2, 3};",
        ".global .u64 a[2] = {1, 2, };", ".global .u64 a[2][2] = {1, 2};",
        ".global .u64 a[2][2] = {{1, 2, 3}};", ".global .u64 a[1][2] = {{1}, {2}};",
        ".global .u64 a[2] = {{1}, 2};", ".global .v2 .u32 a = 1;",
        ".global .v2 .u32 a[2] = {1, 2};", ".global .v4 .f32 a = {1.0, 2.0, 3.0};",
        ".global .u32 a = {addr_mode_0 = wrap};", ".shared .u32 a = 1;",
        ".extern .global .u32 a = 1;"}) {
    EXPECT_TRUE(is_malformed(preamble + declaration)) << declaration;
  }
  parsed(preamble +
         ".global .u64 a[2] = {1}; .global .u64 b[2][2] = {{1}, {2, 3}};\n"
         ".global .u32 c[][2] = {{1, 2}, {3}, {}}; .global .v2 .u32 d[1] = {{1, 2}};\n"
         ".global .texref t = {addr_mode_0 = wrap}; .weak .global .u32 e = 1;\n");
}

TEST(Initialisers, an_address_is_of_something_in_front_of_it_and_in_a_type_that_holds_it) {
  parsed(
      preamble +
      ".func f() {ret;} .const .u32 c; .global .u64 a[4] = {f, c, generic(c)+4*2, c+4-8};\n"
      ".global .u32 n = c; .global .u8 m[3] = {0xFF(c), 0xff00(c+1), 0xff0000(generic(c)+1)};\n");
  const std::string front = preamble + ".func f() {ret;} .global .u32 c; .shared .u32 s; ";
  for (const std::string declaration :
       {".global .u64 a = c-4;", ".global .u64 a = 4+c;", ".global .u64 a = (c);",
        ".global .u64 a = generic(c+4);", ".global .u64 a = c+1.0;", ".global .s64 a = c;",
        ".global .u16 a = c;", ".global .f64 a = c;", ".global .u64 a = other;",
        ".global .u64 a = a;", ".global .u64 a = s;", ".global .u64 a = f+4;",
        ".global .u64 a = generic(f);", ".global .u8 a = 0xf(c);", ".global .u8 a = 0x7f80(c);",
        ".global .u16 a = 0xff(c);"}) {
    EXPECT_TRUE(is_malformed(front + declaration)) << declaration;
  }
}

}  // namespace
}  // namespace demarc::ptx::test
