// Tests which colours each card gets, and that masks that do not isolate are refused.
#include "demarc/color/color_scheme.hpp"

#include <gtest/gtest.h>

namespace demarc::color {
namespace {

using Masks = std::vector<std::uint64_t>;

gpu::Device described(const char* card) {
  return gpu::describe_card(card).value();
}

TEST(ColorScheme, an_h100_has_masks_in_the_longest_runs) {
  const auto halves = color_scheme(described("NVIDIA H100 80GB HBM3"), 2);
  ASSERT_TRUE(halves) << halves.error().message;
  EXPECT_EQ(halves->masks, Masks{0xc4000});
  const auto quarters = color_scheme(described("NVIDIA H100 80GB HBM3"), 3);
  ASSERT_TRUE(quarters);
  EXPECT_EQ(quarters->colors, 4U);
  EXPECT_EQ(quarters->masks, (Masks{0x18a000, 0xc4000}));
  EXPECT_FALSE(quarters->remainders);
}

TEST(ColorScheme, an_h200_has_remainders_and_not_its_one_mask) {
  const auto scheme = color_scheme(described("NVIDIA H200"), 2);
  ASSERT_TRUE(scheme) << scheme.error().message;
  EXPECT_TRUE(scheme->masks.empty());
  ASSERT_TRUE(scheme->remainders);
  EXPECT_EQ(scheme->remainders->digits, h200_remainders().digits);
  EXPECT_EQ(scheme->remainders->half, h200_remainders().half);
  EXPECT_EQ(scheme->paths, 6U);
  EXPECT_FALSE(color_scheme(described("NVIDIA H200"), 8)) << "of six paths";
}

TEST(ColorScheme, knows_the_granule_of_its_shares_without_an_arena) {
  const auto masks = color_scheme(described("NVIDIA H100 80GB HBM3"), 4).value();
  EXPECT_EQ(masks.law_of_granules()->granule(), make_law(Parities{masks.masks, 3})->granule());
  EXPECT_STREQ(masks.law_of_granules()->what_changes(), "colours");
  const auto scheme = color_scheme(described("NVIDIA H200"), 2).value();
  const std::vector<std::uint32_t> pages{1, 2};
  const auto coloring = RemainderColoring::make(*scheme.remainders, {{0, 24}}, pages).value();
  const LawPtr lent = make_law(coloring.steps(0).value());
  EXPECT_EQ(scheme.law_of_granules()->granule(), lent->granule());
  EXPECT_STREQ(lent->what_changes(), "slices");
}

TEST(ColorScheme, cards_of_which_nothing_is_known_that_isolates_are_refused) {
  const auto unknown = gpu::describe_card("NVIDIA A1000");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::missing_capability);
  EXPECT_NE(unknown.error().message.find("demarc probe memory -o FILE"), std::string::npos);
  gpu::Device device = described("NVIDIA H200");
  device.address_map->remainder_runs.clear();
  const auto masks_only = color_scheme(device, 2);
  ASSERT_FALSE(masks_only) << "0xab000 does not keep writes apart";
  EXPECT_NE(masks_only.error().message.find("0 masks that keep reads, writes"), std::string::npos);
  device.address_map.reset();
  EXPECT_FALSE(color_scheme(device, 2));
  EXPECT_FALSE(color_scheme(described("NVIDIA H100 80GB HBM3"), 16)) << "of eight";
}

TEST(ColorScheme, masks_that_were_measured_not_to_isolate_are_named) {
  const gpu::Device h200 = described("NVIDIA H200");
  const auto refused = check_masks(h200, Masks{0xab000});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("0xab000 does not keep"), std::string::npos);
  const gpu::Device h100 = described("NVIDIA H100 80GB HBM3");
  EXPECT_TRUE(check_masks(h100, Masks{0xc4000, 0x18a000}));
  EXPECT_FALSE(check_masks(h100, Masks{0xc4000, 0x77000}));
  EXPECT_TRUE(check_masks(gpu::Device{}, Masks{0x1000})) << "nothing was measured";
}

TEST(ColorScheme, a_space_of_masks_isolates_when_all_its_sums_do) {
  std::vector<gpu::MaskIsolation> measured;
  for (const std::uint64_t mask : {0x1000U, 0x2000U, 0x3000U}) {
    measured.push_back({mask, 1.0, 1.1, 1.0, 1.0});
  }
  EXPECT_EQ(isolating_masks(measured, Traffic::all).size(), 2U);
  measured[2].dram_write = 1.3;
  EXPECT_EQ(isolating_masks(measured, Traffic::all), Masks{0x1000});
  EXPECT_EQ(isolating_masks(measured, Traffic::dram_reads).size(), 2U);
  measured.pop_back();
  EXPECT_EQ(isolating_masks(measured, Traffic::dram_reads).size(), 1U) << "a sum not measured";
}

}  // namespace
}  // namespace demarc::color
