// Tests that colours which cannot be made are refused, with words that say what would be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/color/color_scheme.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/color/remainder_coloring.hpp"
#include "demarc/device/device.hpp"

namespace demarc::color {
namespace {

using testing::HasSubstr;

TEST(ColoringChecks, masks_are_at_most_eight_within_a_page_and_each_adds_a_colour) {
  const auto error_of_masks = [](const std::vector<std::uint64_t>& masks,
                                 std::uint64_t page_bytes) {
    const auto made = Coloring::make(masks, page_bytes);
    return made ? std::string() : made.error().message;
  };
  std::vector<std::uint64_t> masks;
  for (unsigned bit = 0; bit < 8; ++bit) masks.push_back(std::uint64_t{1} << (12 + bit));
  EXPECT_EQ(error_of_masks(masks, 1U << 20U), "");
  EXPECT_THAT(error_of_masks(masks, 1U << 19U), HasSubstr("reaches beyond a page of 524288 bytes"));
  EXPECT_THAT(error_of_masks(masks, 3U << 20U), HasSubstr("must be a power of two"));
  masks.push_back(1U << 20U);
  EXPECT_THAT(error_of_masks(masks, 1U << 21U), HasSubstr("9 masks; at most 8"));
  EXPECT_THAT(error_of_masks({0x1000, 0x2000, 0x3000}, 1U << 21U), HasSubstr("span only 2 bits"));
}

TEST(ColoringChecks, a_mask_that_no_known_row_makes_has_no_constant) {
  const std::uint64_t masks[] = {0x3000};
  const auto coloring = Coloring::make(masks, 1U << 21U).value();
  const std::uint64_t known[] = {0x1000, 0x2000};
  EXPECT_EQ(coloring.constant_from_rows(known, 0b11).value(), 0U);
  EXPECT_EQ(coloring.constant_from_rows(known, 0b01).value(), 1U);
  EXPECT_THAT(coloring.constant_from_rows(std::span(known).first(1), 0).error().message,
              HasSubstr("mask 0x3000 is not a sum of the 1 known rows"));
}

TEST(ColorSchemeChecks, colours_are_two_to_64_of_a_known_map) {
  const gpu::Device h100 = gpu::find_device("h100-80gb-hbm3").value();
  EXPECT_TRUE(color_scheme(h100, 2));
  for (const std::uint32_t colors : {0U, 1U, 65U})
    EXPECT_THAT(color_scheme(h100, colors).error().message, HasSubstr("2 to 64")) << colors;
  EXPECT_EQ(color_scheme(gpu::find_device("p100").value(), 2).error().kind,
            ErrorKind::missing_capability);
}

TEST(ColorSchemeChecks, remainders_make_as_many_colours_as_runs_and_only_inside_two_modules) {
  gpu::Device h200 = gpu::find_device("h200").value();
  EXPECT_TRUE(color_scheme(h200, 4));
  EXPECT_THAT(color_scheme(h200, 8).error().message,
              HasSubstr("8 colours are not possible; only 6 runs"));
  h200.address_map->module.rows.push_back(0x800);
  EXPECT_THAT(color_scheme(h200, 2).error().message,
              HasSubstr("remainders inside 4 modules, but only those inside two"));
}

TEST(ColorSchemeChecks, three_colours_are_three_of_remainders_and_three_of_four_of_masks) {
  const ColorScheme h200 = color_scheme(gpu::find_device("h200").value(), 3).value();
  EXPECT_EQ(h200.colors, 3U);
  EXPECT_EQ(h200.colors_for({2, 3}), ColorSet(2, 3));
  const ColorScheme h100 = color_scheme(gpu::find_device("h100-80gb-hbm3").value(), 3).value();
  EXPECT_EQ(h100.colors, 4U);
  EXPECT_EQ(h100.colors_for({5, 3}), ColorSet(5, 4));
  EXPECT_EQ(h100.colors_for({1, 2}), ColorSet(3, 4)) << "two quarters are a half";
  EXPECT_EQ(h100.colors_for({9, 4}), ColorSet(9, 4));
  EXPECT_FALSE(h100.colors_for({8, 3})) << "there is no fourth of three";
  EXPECT_FALSE(h100.colors_for({1, 8})) << "no half of a colour";
  EXPECT_FALSE(h100.colors_for({1, 5})) << "more than the card has";
}

TEST(ColorSchemeChecks, remainders_that_do_not_divide_evenly_are_refused_by_the_cards_name) {
  const auto refused = color_scheme(gpu::find_device("h200").value(), 5);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(refused.error().message, HasSubstr("NVIDIA H200: 5 parts of 6 paths to memory"));
}

TEST(RemainderColoringChecks, windows_lie_within_the_modulus_and_apart) {
  const auto hash = h200_remainders();
  const auto error_of_windows = [&](std::vector<RemainderColoring::Window> windows) {
    const auto made = RemainderColoring::make(hash, std::move(windows), {});
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(error_of_windows({{0, 24}, {24, 23}}), "");
  EXPECT_EQ(error_of_windows({{46, 2}, {1, 45}}), "") << "around the modulus";
  EXPECT_THAT(error_of_windows({{0, 24}, {23, 1}}), HasSubstr("remainder 23 is in two colours"));
  EXPECT_THAT(error_of_windows({{46, 2}, {0, 1}}), HasSubstr("remainder 0 is in two colours"));
  EXPECT_THAT(error_of_windows({{0, 0}}), HasSubstr("a colour of 0 remainders"));
  EXPECT_THAT(error_of_windows({{47, 1}}), HasSubstr("there are 47 remainders"));
  EXPECT_THAT(error_of_windows({{0, 48}}), HasSubstr("there are 47 remainders"));
}

}  // namespace
}  // namespace demarc::color
