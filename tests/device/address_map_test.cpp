// Tests that address maps of real cards have their colours, and are read as they are written.
#include "demarc/device/address_map.hpp"

#include <gtest/gtest.h>

#include "address_map_json.hpp"
#include "demarc/base/gf2.hpp"
#include "demarc/device/device.hpp"
#include "published_hashes.hpp"

namespace demarc::gpu {
namespace {

constexpr std::uint64_t page = 1U << 21U;

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

TEST(AddressMap, h100_rows_give_eight_modules_at_4_KiB) {
  const std::vector<std::uint64_t> rows{0x77000, 0xb3000, 0x11b800, 0x22800};
  EXPECT_EQ(masks_at_granularity(rows, 4096).size(), 3U);
  EXPECT_EQ(masks_at_granularity(rows, 2048).size(), 4U);
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

TEST(AddressMap, a_modulo_stage_adds_the_page_constant_before_it_wraps) {
  ModuloStage stage;
  stage.modulus = 5;
  stage.number.rows = {0x1000, 0x2000, 0x4000};
  EXPECT_EQ(stage(0x7000), 2U);
  EXPECT_EQ(stage(0x7000, 4), 1U);
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
