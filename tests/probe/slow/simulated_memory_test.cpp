// The probe of a whole simulated memory.
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
  EXPECT_EQ(report->map.miss_registers, 16U);
}

}  // namespace
}  // namespace demarc::probe
