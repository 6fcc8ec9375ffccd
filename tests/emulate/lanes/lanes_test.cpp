// Instructions of one lane against an independent evaluation.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>

#include "lanes/functions.hpp"

namespace demarc::emulate {
namespace {

std::uint64_t evaluate(LaneFunction function, LaneDetails details,
                       std::initializer_list<std::uint64_t> in) {
  LaneInput input;
  unsigned i = 0;
  for (const std::uint64_t value : in) input.in[i++] = value;
  details.sources = static_cast<std::uint8_t>(i);
  return function(input, details);
}

RC_GTEST_PROP(LaneFunctions, lop3_looks_every_bit_up_in_its_table,
              (std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint8_t table)) {
  LaneDetails details;
  details.form = Lop3Form{table, Logic::none};
  std::uint32_t expected = 0;
  for (unsigned bit = 0; bit < 32; ++bit) {
    const unsigned index = ((a >> bit) & 1U) * 4 + ((b >> bit) & 1U) * 2 + ((c >> bit) & 1U);
    expected |= ((table >> index) & 1U) << bit;
  }
  RC_ASSERT(evaluate(lane::lop3, details, {a, b, c}) == expected);
}

RC_GTEST_PROP(LaneFunctions, bfe_u32_is_a_shift_and_a_mask, (std::uint32_t a)) {
  const auto position = *rc::gen::inRange(0U, 40U);
  const auto length = *rc::gen::inRange(0U, 40U);
  LaneDetails details;
  details.type = LaneType::u32;
  const std::uint64_t shifted = position < 32 ? a >> position : 0;
  const std::uint64_t expected =
      length >= 32 ? shifted : shifted & ((std::uint64_t{1} << length) - 1);
  RC_ASSERT(evaluate(lane::bfe, details, {a, position, length}) == expected);
}

RC_GTEST_PROP(LaneFunctions, bfe_s32_extends_the_sign_of_the_field, (std::uint32_t a)) {
  const auto position = *rc::gen::inRange(0U, 31U);
  const auto length = *rc::gen::inRange(1U, 32U - position);
  LaneDetails details;
  details.type = LaneType::s32;
  const auto expected = static_cast<std::uint32_t>(
      static_cast<std::int32_t>(a << (32 - position - length)) >> (32 - length));
  RC_ASSERT(evaluate(lane::bfe, details, {a, position, length}) == expected);
}

RC_GTEST_PROP(LaneFunctions, bfi_puts_back_what_bfe_takes_out, (std::uint32_t a)) {
  const auto position = *rc::gen::inRange(0U, 32U);
  const auto length = *rc::gen::inRange(0U, 33U);
  LaneDetails details;
  details.type = LaneType::u32;
  details.width[0] = 4;
  const std::uint64_t field = evaluate(lane::bfe, details, {a, position, length});
  RC_ASSERT(evaluate(lane::bfi, details, {field, a, position, length}) == a);
}

RC_GTEST_PROP(LaneFunctions, prmt_picks_bytes_by_nibble,
              (std::uint32_t a, std::uint32_t b, std::uint16_t selector)) {
  std::uint8_t bytes[8];
  for (unsigned i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::uint8_t>(a >> (8 * i));
    bytes[i + 4] = static_cast<std::uint8_t>(b >> (8 * i));
  }
  std::uint32_t expected = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = (selector >> (4 * i)) & 15U;
    std::uint32_t byte = bytes[nibble & 7U];
    if ((nibble & 8U) != 0) byte = byte >= 128 ? 255 : 0;
    expected |= byte << (8 * i);
  }
  LaneDetails details;
  details.form = PermuteMode::index;
  RC_ASSERT(evaluate(lane::prmt, details, {a, b, selector}) == expected);
}

RC_GTEST_PROP(LaneFunctions, shf_with_both_halves_equal_rotates, (std::uint32_t a)) {
  const auto n = *rc::gen::inRange(0U, 64U);
  LaneDetails details;
  details.form = AmountForm{true};
  RC_ASSERT(evaluate(lane::shf_left, details, {a, a, n}) == std::rotl(a, static_cast<int>(n % 32)));
  RC_ASSERT(evaluate(lane::shf_right, details, {a, a, n}) ==
            std::rotr(a, static_cast<int>(n % 32)));
}

RC_GTEST_PROP(LaneFunctions, add_with_carry_chains_to_64_bits, (std::uint64_t a, std::uint64_t b)) {
  LaneDetails low;
  low.type = LaneType::u32;
  low.form = CarryForm{true, false};
  LaneInput input;
  input.in[0] = a & 0xffffffffU;
  input.in[1] = b & 0xffffffffU;
  const std::uint64_t low_sum = lane::add_integer(input, low);
  LaneDetails high = low;
  high.form = CarryForm{false, true};
  input.in[0] = a >> 32;
  input.in[1] = b >> 32;
  const std::uint64_t high_sum = lane::add_integer(input, high);
  RC_ASSERT((low_sum | (high_sum << 32)) == a + b);
}

RC_GTEST_PROP(LaneFunctions, dp4a_is_a_sum_of_four_products,
              (std::int32_t a, std::int32_t b, std::int32_t c)) {
  LaneDetails details;
  details.form = DotForm{true, true, false};
  auto expected = static_cast<std::uint32_t>(c);
  for (int i = 0; i < 4; ++i) {
    expected += static_cast<std::uint32_t>(static_cast<std::int8_t>(a >> (8 * i)) *
                                           static_cast<std::int8_t>(b >> (8 * i)));
  }
  RC_ASSERT(evaluate(lane::dp4a, details,
                     {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b),
                      static_cast<std::uint32_t>(c)}) == expected);
}

RC_GTEST_PROP(Conversions, f16_through_f32_and_back_is_the_same, (std::uint16_t bits)) {
  const double value = lane_to_double(bits, LaneType::f16);
  RC_PRE(!std::isnan(value));
  RC_ASSERT(lane_from_double(value, LaneType::f16, Rounding::rn) == bits);
}

RC_GTEST_PROP(Conversions, f32_to_f16_rounds_to_the_nearest_of_two_neighbours,
              (std::uint16_t bits)) {
  const double low = std::fabs(lane_to_double(bits & 0x7fffU, LaneType::f16));
  const double high = lane_to_double((bits & 0x7fffU) + 1U, LaneType::f16);
  RC_PRE(std::isfinite(low) && std::isfinite(high));
  const std::uint64_t below = bits & 0x7fffU;
  const double quarter = low + (high - low) / 4;
  RC_ASSERT(lane_from_double(quarter, LaneType::f16, Rounding::rn) == below);
  RC_ASSERT(lane_from_double(quarter, LaneType::f16, Rounding::rp) == below + 1);
  RC_ASSERT(lane_from_double(quarter, LaneType::f16, Rounding::rz) == below);
  const double middle = low + (high - low) / 2;
  RC_ASSERT(lane_from_double(middle, LaneType::f16, Rounding::rn) ==
            (below % 2 == 0 ? below : below + 1));
}

RC_GTEST_PROP(Conversions, f32_to_s32_saturates_and_truncates, (float value)) {
  const std::uint64_t got = convert_lane(std::bit_cast<std::uint32_t>(value), LaneType::f32,
                                         LaneType::s32, Rounding::rzi, false, false, false);
  const double exact = std::trunc(static_cast<double>(value));
  const double clamped =
      std::isnan(exact) ? 0 : std::min(std::max(exact, -2147483648.0), 2147483647.0);
  RC_ASSERT(static_cast<std::int32_t>(got) == static_cast<std::int32_t>(clamped));
}

RC_GTEST_PROP(RoundingModes, directed_sums_enclose_the_exact_sum, (float a, float b)) {
  LaneDetails details;
  details.type = LaneType::f32;
  details.rounding = Rounding::rm;
  const auto bits = [](float x) { return std::uint64_t{std::bit_cast<std::uint32_t>(x)}; };
  const double exact = static_cast<double>(a) + static_cast<double>(b);
  RC_PRE(std::fabs(exact) < 1e30 && std::fabs(a) > 1e-9F * std::fabs(b) &&
         std::fabs(b) > 1e-9F * std::fabs(a));
  const double down =
      lane_to_double(evaluate(lane::add, details, {bits(a), bits(b)}), LaneType::f32);
  details.rounding = Rounding::rp;
  const double up = lane_to_double(evaluate(lane::add, details, {bits(a), bits(b)}), LaneType::f32);
  RC_ASSERT(down <= exact && exact <= up);
  RC_ASSERT((down == up) == (down == exact));
}

TEST(FloatingPoint, f32_nan_is_canonical_and_minimum_ignores_one_nan) {
  LaneDetails details;
  details.type = LaneType::f32;
  EXPECT_EQ(evaluate(lane::min, details, {0x7fc00001U, 0x3f800000U}), 0x3f800000U);
  EXPECT_EQ(evaluate(lane::min, details, {0x80000000U, 0}), 0x80000000U);
  details.nan = true;
  EXPECT_EQ(evaluate(lane::min, details, {0x7fc00001U, 0x3f800000U}), 0x7fffffffU);
}

TEST(LaneFunctions, whose_form_is_another_instructions_are_told) {
  LaneDetails details;
  details.type = LaneType::u32;
  details.form = AmountForm{true};
  EXPECT_THROW(evaluate(lane::lop3, details, {1, 2, 3}), std::bad_variant_access);
  EXPECT_THROW(evaluate(lane::add_integer, details, {1, 2}), std::bad_variant_access);
}

}  // namespace
}  // namespace demarc::emulate
