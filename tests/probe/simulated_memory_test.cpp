#include "demarc/probe/simulated_memory.hpp"

#include <gtest/gtest.h>

#include "demarc/base/gf2.hpp"
#include "demarc/probe/probe.hpp"

namespace demarc::probe {
namespace {

TEST(SimulatedMemory, TheProbeRecoversThePublishedFunctionsOfAGtx1080FromTimesAlone) {
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
  EXPECT_TRUE(report->module->isolated);
  EXPECT_NEAR(report->map.miss_registers, 16, 1);
}

TEST(SimulatedMemory, ADescriptionWithoutMemorySystemIsRefusedByName) {
  const auto memory = SimulatedMemory::open(gpu::find_device("h200").value(), 1);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().kind, ErrorKind::missing_capability);
  EXPECT_NE(memory.error().message.find("memory_system"), std::string::npos);
}

TEST(SimulatedMemory, StreamsInOneModuleOfAnH100DisturbEachOtherAndInTwoDoNot) {
  const gpu::Device device = gpu::find_device("h100-sxm").value();
  auto memory = SimulatedMemory::open(device, 1).value();
  const sim::memory::AddressDecoder decoder(sim::memory::make_spec(device, 1).value().address);
  const auto stream_of = [&](std::uint32_t module, std::uint32_t first_page) {
    Stream stream;
    stream.chunk_shift = 11;
    for (std::uint32_t chunk = first_page << 10U; stream.chunks.size() < 32768; ++chunk) {
      const auto line = static_cast<std::uint32_t>(chunk << (11U - sim::memory::line_shift));
      if (decoder(line).slice / 5 == module) stream.chunks.push_back(chunk);
    }
    return stream;
  };
  const Stream victim = stream_of(3, 0);
  const auto first = memory->stream_seconds(victim, {});
  ASSERT_TRUE(first) << first.error().message;
  const double alone = *first;
  const auto same = memory->stream_seconds(victim, stream_of(3, 1024));
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_GT(*same / alone, 1.7);
  const auto other = memory->stream_seconds(victim, stream_of(8, 1024));
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_LT(*other / alone, 1.25);
}

}  // namespace
}  // namespace demarc::probe
