// Some of the cells that bench/study/fidelity_bench.cpp compares: the simulated H100 must not come
// to be further from the card than it was.
#include "fidelity.hpp"

#include <gtest/gtest.h>

#include "demarc/base/files.hpp"
#include "demarc/study/sim_executor.hpp"
#include "paths.hpp"

namespace demarc::study {
namespace {

TEST(FidelityToTheCard, holds_on_the_simulated_h100) {
  const auto path = test::source_dir() / "docs" / "measurements" / "isolate-h100-halves.csv";
  const auto measured = parse_measured(read_file(path).value(), path.string());
  ASSERT_TRUE(measured) << measured.error().message;
  Plan plan;
  plan.modes = parse_modes("mask").value();
  plan.victims = {{"chase", "chase@card"}, {"l2_write", "l2_write@card"}};
  plan.aggressors = {{"dram_write", "dram_write@card"}, {"l2_write", "l2_write@card"}};
  plan.rule.warm_up = 1;
  plan.rule.least = plan.rule.most = 1;
  plan.rounds = 1;
  SimExecutorOptions options;
  options.device = "h100-sxm";
  const auto executor = make_sim_executor(options).value();
  const auto result = run_study(plan, *executor, {});
  ASSERT_TRUE(result) << result.error().message;
  const auto fidelity = compare(*measured, *result);
  ASSERT_TRUE(fidelity) << fidelity.error().message;
  const std::string text = fidelity_text(*fidelity);
  EXPECT_LT(fidelity->mean_error, 20) << text;
  EXPECT_LT(fidelity->cells.front().error(), 40) << text;
  for (const ComparedCost& cost : fidelity->costs) {
    EXPECT_NEAR(cost.simulated, cost.measured, 0.05 * cost.measured) << cost.victim;
  }
}

// All workloads of the table at the size that was measured, from their PTX: nothing of the table
// was used for a number of the forecast.
TEST(FidelityToTheCard, a_forecast_knows_what_half_the_memory_costs) {
  const CardFidelity& h100 = compared_cards()[0];
  const auto path = test::source_dir() / "docs" / "measurements" / h100.table;
  const auto measured = parse_measured(read_file(path).value(), path.string());
  ASSERT_TRUE(measured) << measured.error().message;
  Plan plan;
  for (const MeasuredTime& time : *measured) {
    if (time.mode == "mask" && time.aggressor.empty())
      plan.victims.push_back({time.victim, time.victim + "@large"});
  }
  ASSERT_EQ(plan.victims.size(), 15U);
  SimExecutorOptions options;
  options.device = h100.device;
  const auto executor = make_sim_executor(options).value();
  const auto forecast = study::forecast(plan, *executor);
  ASSERT_TRUE(forecast) << forecast.error().message;
  const auto fidelity = compare(*measured, *forecast);
  ASSERT_TRUE(fidelity) << fidelity.error().message;
  const std::string text = fidelity_text(*fidelity);
  EXPECT_GE(fidelity->costs.size(), 13U) << text;
  EXPECT_LE(fidelity->mean_error, h100.forecast_error) << text;
  EXPECT_GE(fidelity->rank_correlation, h100.forecast_rank_correlation) << text;
  const auto share_of = [&](std::string_view name) {
    for (const WorkloadForecast& victim : forecast->victims)
      if (victim.name == name) return victim.dram_demand_share;
    return -1.0;
  };
  EXPECT_LT(share_of("l2_write"), 0.01) << "it lives in the L2";
  EXPECT_GT(share_of("dram_read"), 0.9);
}

}  // namespace
}  // namespace demarc::study
