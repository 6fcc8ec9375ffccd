// The probe of a whole simulated memory.
#include "simulated_memory.hpp"

#include <gtest/gtest.h>

#include "demarc/base/gf2.hpp"
#include "demarc/base/json.hpp"
#include "demarc/probe/probe.hpp"
#include "planted_memory.hpp"

namespace demarc::probe {
namespace {

TEST(SimulatedMemory, the_probe_recovers_the_published_functions_of_a_gtx_1080_from_times_alone) {
  const gpu::Device device = gpu::find_device("gtx1080").value();
  auto memory = SimulatedMemory::open(device, 1);
  ASSERT_TRUE(memory) << memory.error().message;
  const auto report = probe_memory(**memory, {}, {});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->decided);
  EXPECT_TRUE(gf2_same_space(report->map.bank.rows, device.address_map->bank.rows));
  EXPECT_TRUE(gf2_same_space(report->map.set.rows, device.address_map->set.rows));
  EXPECT_TRUE(gf2_same_space(report->map.module.rows, device.address_map->module.rows));
  EXPECT_EQ(report->map.cache_ways, 16U);
  // Figure 8: sharing set and bank, or bank, is worst, ten times and more; then sharing the module;
  // another module is not felt. The knee lies at the 16 registers.
  const auto& curves = report->module->curves;
  const auto last = [&](std::size_t i) { return static_cast<double>(curves[i].cycles.back()); };
  const double alone = static_cast<double>(curves[0].cycles.front());
  EXPECT_GT(last(0), 10 * alone);
  EXPECT_NEAR(last(0), last(1), 0.05 * last(0));
  EXPECT_GT(last(1), 1.5 * last(2));
  EXPECT_GT(last(3), 1.5 * last(4));
  EXPECT_LT(last(4), 1.05 * alone);
  EXPECT_EQ(report->module->isolated, true);
  EXPECT_EQ(report->map.miss_registers, 16U);
  EXPECT_EQ(report->windows.colors, (color::PageColors{2, 4096}));
}

TEST(SimulatedMemory, the_probe_finds_eight_colours_of_a_v100_that_survive_pages) {
  const gpu::Device device = gpu::find_device("v100").value();
  auto memory = SimulatedMemory::open(device, 1).value();
  const auto report = probe_memory(*memory, {}, {});
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_TRUE(report->decided) << report_to_text(*report);
  EXPECT_TRUE(gf2_same_space(report->map.module.rows, device.address_map->module.rows));
  EXPECT_EQ(report->windows.colors, (color::PageColors{8, 4096}));
}

// The banks of a V100's channel are busy with 52 threads, before its 64 registers are taken.
TEST(SimulatedMemory, the_registers_of_a_v100_are_not_stated_since_its_banks_hide_them) {
  const gpu::Device device = gpu::find_device("v100").value();
  EXPECT_EQ(sim::memory::make_spec(device, 1).value().miss_registers, 64U);
  const auto basis = [](const gpu::LinearHash& hash) {
    return gpu::LinearHash{gpu::low_pivot_basis(hash.rows)};
  };
  const gpu::AddressMap& map = *device.address_map;
  auto memory = SimulatedMemory::open(device, 1).value();
  Random random(1);
  const auto found =
      measure_module(*memory, basis(map.bank), basis(map.set), basis(map.module), random, {});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->miss_registers.number, 0U) << found->miss_registers.reason;
  EXPECT_EQ(found->isolated, true);
}

// What is not seen is said in text, JSON and description alike.
TEST(ProbeMemory, a_number_that_is_not_seen_is_null_and_said_and_not_written) {
  auto truth = planted_truth("gtx1080").value();
  truth.miss_registers = 80;
  PlantedMemory memory(truth, 1);
  const auto report = probe_memory(memory, {}, {}).value();
  ASSERT_TRUE(report.decided);
  EXPECT_EQ(report.map.miss_registers, 0U);
  EXPECT_NE(report_to_text(report).find(
                "the miss-status registers of a module were not seen: up to 65 threads"),
            std::string::npos);
  const Json json = Json::parse(report_to_json(report));
  EXPECT_TRUE(json["module"]["miss_registers"].is_null());
  EXPECT_EQ(json["module"]["miss_registers_reason"], report.module->miss_registers.reason);
  EXPECT_EQ(json["modules"], 8U);
  EXPECT_EQ(json["slice_count"], 8U);
  EXPECT_EQ(json["set"]["ways"], 16U);
}

// The slice of a GTX 1060 is a remainder modulo 3 of an address: no linear function names it.
TEST(ProbeMemory, of_an_address_map_that_is_not_linear_nothing_is_stated) {
  auto memory = SimulatedMemory::open(gpu::find_device("gtx1060-3gb").value(), 1).value();
  const auto report = probe_memory(*memory, {}, {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->decided);
  EXPECT_EQ(report->map.slices, 0U);
  EXPECT_EQ(report->map.miss_registers, 0U);
  const Json json = Json::parse(report_to_json(*report));
  for (const char* key : {"modules", "slice_count"}) EXPECT_TRUE(json[key].is_null()) << key;
  EXPECT_TRUE(json["set"]["ways"].is_null());
  EXPECT_FALSE(json.contains("module"));
  EXPECT_NE(report_to_text(*report).find("NOT decided"), std::string::npos);
}

// Some of its 80 slices look alike from 24 SMs, and no remainder is found to tell them apart.
TEST(SimulatedMemory, the_slices_of_an_h100_that_look_alike_are_not_counted_as_one) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  auto memory = SimulatedMemory::open(device, 1).value();
  const auto found = find_slices(*memory, {}, {});
  ASSERT_TRUE(found) << found.error().message;
  const gpu::AddressMap map = map_of_slices(memory->facts(), *found);
  EXPECT_LT(found->model.clusters.sizes.size(), device.address_map->slices);
  EXPECT_EQ(map.slices, 0U) << "not known";
  EXPECT_EQ(map.interleave_bytes, 256U) << "the chunk that was measured as one";
  EXPECT_TRUE(gf2_same_space(map.module.rows, device.address_map->module.rows));
}

}  // namespace
}  // namespace demarc::probe
