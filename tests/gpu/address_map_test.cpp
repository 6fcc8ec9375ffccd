// Tests that colours divide a page exactly, and that maps of real cards have theirs.
#include "demarc/gpu/address_map.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "address_map_json.hpp"
#include "demarc/base/gf2.hpp"
#include "demarc/gpu/device.hpp"
#include "published_hashes.hpp"

namespace demarc::gpu {
namespace {

constexpr std::uint64_t page = 1U << 21U;

// A few independent masks inside a 64 KiB page, whose pivots lie at bit 8 or above.
std::vector<std::uint64_t> arbitrary_masks() {
  auto masks = *rc::gen::container<std::vector<std::uint64_t>>(
      rc::gen::inRange<std::uint64_t>(1, std::uint64_t{1} << 8U));
  for (auto& mask : masks) mask <<= 8U;
  masks = low_pivot_basis(masks);
  if (masks.size() > 4) masks.resize(4);
  return masks;
}

RC_GTEST_PROP(AddressMap, position_and_linear_are_inverse_on_every_colour, ()) {
  const auto masks = arbitrary_masks();
  const auto coloring = Coloring::make(masks, 1U << 16U).value();
  const auto color = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const auto constant = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const auto linear = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40U);
  const auto position = coloring.position(linear, color, constant);
  RC_ASSERT(coloring.linear(position) == linear);
  RC_ASSERT(coloring.color(position, constant) == color);
}

RC_GTEST_PROP(AddressMap, colours_partition_a_page_exactly, ()) {
  const auto masks = arbitrary_masks();
  constexpr std::uint64_t small_page = 1U << 16U;
  const auto coloring = Coloring::make(masks, small_page).value();
  const auto constant = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const std::uint64_t step = std::min<std::uint64_t>(coloring.chunk_bytes(), 256);
  std::vector<int> seen(small_page / step, 0);
  for (std::uint32_t color = 0; color < coloring.colors(); ++color) {
    for (std::uint64_t at = 0; at < small_page / coloring.colors(); at += step) {
      ++seen.at(coloring.position(at, color, constant) / step);
    }
  }
  RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));
}

RC_GTEST_PROP(AddressMap, a_chunk_of_a_colour_is_contiguous, ()) {
  const auto coloring = Coloring::make(arbitrary_masks(), 1U << 16U).value();
  const auto color = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const auto k = *rc::gen::inRange<std::uint64_t>(0, 1000);
  const auto inside = *rc::gen::inRange<std::uint64_t>(0, coloring.chunk_bytes());
  const auto start = coloring.chunk(k, color);
  RC_ASSERT(start % coloring.chunk_bytes() == 0U);
  RC_ASSERT(coloring.position(k * coloring.chunk_bytes() + inside, color) == start + inside);
}

TEST(AddressMap, one_mask_gives_the_chunk_formula_of_its_lowest_bit) {
  constexpr std::uint64_t mask = 0xc4000;
  const auto coloring = Coloring::make(std::vector<std::uint64_t>{mask}, page).value();
  EXPECT_EQ(coloring.chunk_bytes(), 16384U);
  for (std::uint64_t k = 0; k < 300; ++k) {
    const std::uint64_t low = (k << 14U) & 0x3fffU;
    const std::uint64_t v = ((k >> 0U) << 15U) | low;
    for (const std::uint32_t constant : {0U, 1U}) {
      for (const std::uint32_t w : {0U, 1U}) {
        const std::uint64_t expected = v + ((parity(v, mask) ^ constant ^ w) << 14U);
        EXPECT_EQ(coloring.chunk(k, w, constant), expected);
      }
    }
  }
}

TEST(AddressMap, gtx1080_has_two_colours_at_4_KiB_and_eight_modules) {
  const auto module = published::gtx1080_module();
  EXPECT_EQ(masks_at_granularity(module, 4096).size(), 1U);
  EXPECT_EQ(masks_at_granularity(module, 1024).size(), 3U);
  EXPECT_TRUE(
      gf2_same_space(common_masks(published::gtx1080_bank(), published::gtx1080_set()), module));
}

TEST(AddressMap, v100_has_eight_colours_at_4_KiB_and_32_modules) {
  const auto module = published::v100_module();
  EXPECT_EQ(masks_at_granularity(module, 4096).size(), 3U);
  EXPECT_EQ(gf2_rank(module), 5U);
  EXPECT_TRUE(gf2_same_space(common_masks(published::v100_bank(), published::v100_set()), module));
}

TEST(AddressMap, descriptions_of_older_cards_hold_the_published_functions) {
  const auto gtx1080 = find_device("gtx1080").value().address_map.value();
  EXPECT_EQ(gtx1080.module.rows, published::gtx1080_module());
  EXPECT_EQ(gtx1080.bank.rows, published::gtx1080_bank());
  EXPECT_EQ(gtx1080.set.rows, published::gtx1080_set());
  const auto v100 = find_device("v100").value().address_map.value();
  EXPECT_EQ(v100.module.rows, published::v100_module());
  EXPECT_EQ(v100.bank.rows, published::v100_bank());
  EXPECT_EQ(v100.set.rows, published::v100_set());
}

TEST(AddressMap, h100_rows_give_eight_modules_at_4_KiB) {
  const std::vector<std::uint64_t> rows{0x77000, 0xb3000, 0x11b800, 0x22800};
  EXPECT_EQ(masks_at_granularity(rows, 4096).size(), 3U);
  EXPECT_EQ(masks_at_granularity(rows, 2048).size(), 4U);
}

TEST(AddressMap, a_constant_follows_the_rows_that_make_up_a_mask) {
  const std::vector<std::uint64_t> rows{0x77000, 0xb3000, 0x11b800};
  const auto coloring = Coloring::make(std::vector<std::uint64_t>{0x77000 ^ 0xb3000}, page).value();
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b000).value(), 0U);
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b001).value(), 1U);
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b011).value(), 0U);
  EXPECT_EQ(coloring.constant_from_rows(rows, 0b110).value(), 1U);
  const auto other = Coloring::make(std::vector<std::uint64_t>{0x100}, page).value();
  EXPECT_FALSE(other.constant_from_rows(rows, 0).has_value());
}

RC_GTEST_PROP(AddressMap, constants_shift_the_colour_of_every_address, ()) {
  const auto masks = arbitrary_masks();
  const auto coloring = Coloring::make(masks, 1U << 16U).value();
  const LinearHash rows{masks};
  const auto constant = *rc::gen::inRange<std::uint32_t>(0, coloring.colors());
  const auto offset = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 30U);
  // The page behaves as if an address bit above it were set that belongs to the rows of `constant`.
  const auto shifted = coloring.constant_from_rows(rows.rows, constant).value();
  RC_ASSERT(coloring.color(offset, shifted) == (coloring.color(offset) ^ shifted));
}

TEST(AddressMap, a_modulo_stage_adds_the_page_constant_before_it_wraps) {
  ModuloStage stage;
  stage.modulus = 5;
  stage.number.rows = {0x1000, 0x2000, 0x4000};
  EXPECT_EQ(stage(0x7000), 2U);
  EXPECT_EQ(stage(0x7000, 4), 1U);
}

TEST(AddressMap, dependent_masks_and_masks_beyond_a_page_are_refused) {
  const std::vector<std::uint64_t> dependent{0x3000, 0x5000, 0x6000};
  EXPECT_FALSE(Coloring::make(dependent, page).has_value());
  EXPECT_FALSE(Coloring::make(std::vector<std::uint64_t>{page}, page).has_value());
  EXPECT_TRUE(Coloring::make(std::vector<std::uint64_t>{page}, 0).has_value());
}

AddressMap full_map() {
  AddressMap map;
  map.address_bits = 21;
  map.page_bytes = page;
  map.interleave_bytes = 4096;
  map.slices = 80;
  map.cache_ways = 16;
  map.miss_registers = 16;
  map.module.rows = {0x77000, 0xb3000};
  map.set.rows = {0x80};
  map.stack = ModuloStage{5, LinearHash{{0x2000, 0x4000}}};
  map.remainder_runs = {2, 3};
  map.table = ChunkTable{page / 2, {{0, 1}, {1, 7}}};
  map.isolation.push_back({0xc4000, 1.0, 1.01, 1.0, 1.11});
  return map;
}

TEST(AddressMap, survives_json) {
  const AddressMap map = full_map();
  const Json json = address_map_to_json(map);
  const auto text = parse_json(json.dump(), "map").value();
  const auto read = address_map_from_json(JsonObject::of(text, "map").value());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, map);
}

TEST(AddressMap, json_errors_name_the_place) {
  auto json = address_map_to_json(full_map());
  json["module_masks"][1] = 7;
  auto read = address_map_from_json(JsonObject::of(json, "d.json: address_map").value());
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("address_map.module_masks[1]"), std::string::npos);

  json = address_map_to_json(full_map());
  json["module_masks"][1] = "0x77000";
  read = address_map_from_json(JsonObject::of(json, "d.json: address_map").value());
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("depend on each other"), std::string::npos);

  json = address_map_to_json(full_map());
  json["remainder_runs"] = std::vector<std::uint32_t>{2, 4};
  read = address_map_from_json(JsonObject::of(json, "d.json: address_map").value());
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("must add up to the modulus of stack, 5"), std::string::npos);
}

}  // namespace
}  // namespace demarc::gpu
