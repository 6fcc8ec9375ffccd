// Which memory a name opens, and what is planted in it.
#include "demarc/probe/open_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

using testing::HasSubstr;

std::string opened(std::string_view device) {
  const auto found = open_memory(device, 1U << 30U, 1);
  if (!found) return found.error().message;
  return found->memory->facts().name + " of " + found->device.name;
}

TEST(OpenMemory, a_name_opens_what_it_says) {
  EXPECT_EQ(opened("planted:h100"), "planted:h100 of " + gpu::find_device("h100-sxm")->name);
  EXPECT_EQ(opened("planted:h200"), "planted:h200 of " + gpu::find_device("h200")->name);
  const std::string gtx1080 = gpu::find_device("gtx1080")->name;
  EXPECT_EQ(opened("planted:gtx1080"), gtx1080 + " of " + gtx1080);
  EXPECT_EQ(opened("sim:gtx1080"), gtx1080 + " (simulated) of " + gtx1080);
}

TEST(OpenMemory, what_does_not_exist_is_named) {
  EXPECT_THAT(opened("planted:nothing"), HasSubstr("'nothing' is not known; there are gtx1080"));
  EXPECT_THAT(opened("sim:nothing"), HasSubstr("nothing"));
  EXPECT_THAT(opened("sim:h100-80gb-hbm3"), HasSubstr("memory_system"));
  EXPECT_THAT(opened("nothing"), HasSubstr("nothing"));
}

TEST(PlantedTruth, of_a_description_is_what_it_says) {
  const gpu::Device device = gpu::find_device("gtx1080").value();
  const PlantedTruth truth = planted_truth(device).value();
  EXPECT_EQ(truth.facts.address_bits, device.address_map->address_bits);
  EXPECT_EQ(truth.facts.sms, 20U);
  EXPECT_EQ(truth.facts.l2_bytes, 2U << 20U);
  EXPECT_EQ(truth.facts.line_bytes, device.l2.line_bytes);
  EXPECT_TRUE(truth.facts.physical_addresses);
  EXPECT_EQ(truth.bank.rows, device.address_map->bank.rows);
  EXPECT_EQ(truth.set.rows, device.address_map->set.rows);
  EXPECT_EQ(truth.cache_module.rows, device.address_map->module.rows);
}

TEST(PlantedTruth, the_size_of_the_cache_tells_the_ways_that_the_description_does_not) {
  gpu::Device device = gpu::find_device("gtx1080").value();
  device.address_map->cache_ways = 0;
  device.address_map->miss_registers = 0;
  const std::uint64_t lines = device.l2.size_bytes / device.l2.line_bytes;
  EXPECT_EQ(planted_truth(device)->ways, lines / device.address_map->set.count());
  EXPECT_EQ(planted_truth(device)->miss_registers, 16U);
  device.address_map->cache_ways = 4;
  device.address_map->miss_registers = 9;
  EXPECT_EQ(planted_truth(device)->ways, 4U);
  EXPECT_EQ(planted_truth(device)->miss_registers, 9U);
}

TEST(PlantedTruth, needs_functions_of_physical_addresses) {
  const gpu::Device whole = gpu::find_device("gtx1080").value();
  std::vector<gpu::Device> lacking(4, whole);
  lacking[0].address_map.reset();
  lacking[1].address_map->page_bytes = 4096;
  lacking[2].address_map->bank.rows.clear();
  lacking[3].address_map->set.rows.clear();
  for (const gpu::Device& device : lacking) {
    const auto truth = planted_truth(device);
    ASSERT_FALSE(truth);
    EXPECT_EQ(truth.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(truth.error().message, HasSubstr("has no bank and set functions"));
  }
}

TEST(PlantedTruth, of_the_hoppers_is_not_linear) {
  EXPECT_EQ(planted_truth("h100")->stack.modulus, 5U);
  EXPECT_EQ(planted_truth("h100")->module.count(), 16U);
  EXPECT_EQ(planted_truth("h100")->facts.pages, 4096U);
  EXPECT_EQ(planted_truth("h100")->facts.l2_bytes, 50U << 20U);
  const PlantedTruth h200 = planted_truth("h200").value();
  EXPECT_EQ(h200.remainders->modulus, 47U);
  EXPECT_EQ(h200.paths, 6U);
  EXPECT_EQ(h200.facts.sms, 132U);
  EXPECT_EQ(h200.facts.page_bytes, 2U << 20U);
  EXPECT_EQ(h200.facts.l2_bytes, 60U << 20U);
}

}  // namespace
}  // namespace demarc::probe
