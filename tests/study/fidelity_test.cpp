// Tests the errors and rank correlations of simulated slowdowns beside measured ones.
#include "fidelity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "demarc/study/sim_executor.hpp"

namespace demarc::study {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view table =
    "mode,victim,aggressor,runs,kernels_mean_us,kernels_p50_us\n"
    "none,va,-,50,100.00,1\n"
    "mask,va,-,50,200.00,1\n"
    "mask,va,mm,50,210.00,1\n"
    "mask,va,nn,50,300.00,1\n";

// va alone takes 10, on half of the card 30, beside mm 30 and beside nn 36.
StudyResult simulated() {
  StudyResult result;
  result.plan.modes = parse_modes("mask").value();
  result.plan.victims = parse_workloads("va", "victims").value();
  result.plan.aggressors = parse_workloads("mm,nn", "aggressors").value();
  Baseline alone;
  alone.times.mean = 10;
  result.baselines.push_back(alone);
  const auto add = [&](std::optional<std::size_t> aggressor, double mean) {
    Cell cell;
    cell.aggressor = aggressor;
    cell.times.mean = mean;
    result.cells.push_back(cell);
  };
  add(std::nullopt, 30);
  add(0, 30);
  add(1, 36);
  return result;
}

TEST(Fidelity, errors_are_differences_of_slowdowns_in_points) {
  const auto measured = parse_measured(table, "t.csv").value();
  const auto fidelity = compare(measured, simulated());
  ASSERT_TRUE(fidelity) << fidelity.error().message;
  ASSERT_EQ(fidelity->cells.size(), 2U);
  EXPECT_EQ(fidelity->cells[0].aggressor, "nn");  // the worst first
  EXPECT_NEAR(fidelity->cells[0].measured, 50, 1e-9);
  EXPECT_NEAR(fidelity->cells[0].simulated, 20, 1e-9);
  EXPECT_NEAR(fidelity->cells[1].error(), 5, 1e-9);
  EXPECT_NEAR(fidelity->mean_error, 17.5, 1e-9);
  EXPECT_NEAR(fidelity->median_error, 17.5, 1e-9);
  EXPECT_NEAR(fidelity->rank_correlation, 1, 1e-9);
  EXPECT_NEAR(fidelity->costs.at(0).measured, 2, 1e-9);
  EXPECT_NEAR(fidelity->costs.at(0).simulated, 3, 1e-9);
  EXPECT_THAT(fidelity_text(*fidelity),
              HasSubstr("2 cells: mean error 0.175x, median 0.175x, worst 0.300x, rank "
                        "correlation 1.00\n"));
}

TEST(Fidelity, order_that_is_turned_round_is_a_correlation_of_minus_one) {
  StudyResult turned = simulated();
  turned.cells[1].times.mean = 60;
  EXPECT_NEAR(compare(parse_measured(table, "t.csv").value(), turned)->rank_correlation, -1, 1e-9);
}

TEST(Fidelity, a_study_says_the_error_to_expect) {
  EXPECT_THAT(expected_error("h100-sxm"), HasSubstr("by 0.09x on average"));
  EXPECT_THAT(expected_error("h100-sxm"), HasSubstr("are off by 0.18x on average"));
  EXPECT_THAT(expected_error("h200"), Not(HasSubstr("forecast")));
  EXPECT_THAT(expected_error("gtx1080"), HasSubstr("not known"));
  SimExecutorOptions options;
  options.device = "h200";
  const DeviceContext context = make_sim_executor(options).value()->context();
  EXPECT_THAT(context.notes, ElementsAre(expected_error("h200")));
  EXPECT_THAT(context.model, ElementsAre(HasSubstr("132 SMs")));
}

// va is forecast to take 1.2 and takes 1.5 times as long, nn 1.6 and 1.5, mm 2 and 1.8.
TEST(Fidelity, a_forecast_is_compared_with_what_colours_cost) {
  const auto measured = parse_measured(
      "mode,victim,aggressor,runs,kernels_mean_us\nmask,va,-,9,200\nmask+color,va,-,9,300\n"
      "mask,nn,-,9,100\nmask+color,nn,-,9,150\nmask,mm,-,9,10\nmask+color,mm,-,9,18\n",
      "t.csv");
  Forecast forecast;
  const auto add = [&](const char* name, double slowdown, const char* missing) {
    WorkloadForecast one;
    one.name = name;
    one.half_memory_slowdown = slowdown;
    one.missing = missing;
    forecast.victims.push_back(one);
  };
  add("va", 1.2, "");
  add("nn", 1.6, "");
  add("chase", 9, "its addresses have no closed form");
  add("mm", 2, "");
  const auto fidelity = compare(measured.value(), forecast);
  ASSERT_TRUE(fidelity) << fidelity.error().message;
  EXPECT_NEAR(fidelity->mean_error, 20, 1e-9);
  EXPECT_NEAR(fidelity->rank_correlation, std::sqrt(3) / 2, 1e-9) << "va and nn measure the same";
  EXPECT_EQ(
      fidelity_text(*fidelity),
      "time with half the memory over that with all of it, on half of the SMs: forecast, measured\n"
      "  va             1.20   1.50\n"
      "  nn             1.60   1.50\n"
      "  mm             2.00   1.80\n"
      "  chase        none\n"
      "3 workloads: mean error 0.200x, rank correlation 0.87\n");
  add("sp", 1, "");
  EXPECT_THAT(compare(measured.value(), forecast).error().message, HasSubstr("no sp next to idle"));
  forecast.victims.clear();
  EXPECT_THAT(compare(measured.value(), forecast).error().message, HasSubstr("no victim"));
  forecast.missing = "no GPU is described";
  EXPECT_THAT(compare(measured.value(), forecast).error().message, HasSubstr("no GPU is"));
}

TEST(Fidelity, equals_share_the_mean_of_their_places) {
  EXPECT_THAT(ranks_of({7, 3, 7, 1}), ElementsAre(3.5, 2, 3.5, 1));
}

TEST(Fidelity, what_is_missing_or_wrong_is_named) {
  StudyResult result = simulated();
  const auto measured = parse_measured(table, "t.csv").value();
  result.plan.aggressors[1].name = "sp";
  EXPECT_THAT(compare(measured, result).error().message, HasSubstr("no va next to sp under mask"));
  result = simulated();
  result.cells[1].error = "wrong output";
  EXPECT_THAT(compare(measured, result).error().message, HasSubstr("va: wrong output"));
  result = simulated();
  result.cells[2].not_run = "too large";
  EXPECT_EQ(compare(measured, result).error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(compare(measured, result).error().message, HasSubstr("va: too large"));
  result.cells.clear();
  EXPECT_THAT(compare(measured, result).error().message, HasSubstr("no cell to compare"));
  EXPECT_THAT(parse_measured("a,b\n", "t.csv").error().message, HasSubstr("t.csv:1: this is no"));
  EXPECT_THAT(parse_measured(std::string(table) + "mask,va,mm,50,x\n", "t.csv").error().message,
              HasSubstr("t.csv:6: expected a line mode"));
  EXPECT_THAT(parse_measured(std::string(table) + "mask,va\n", "t.csv").error().message,
              HasSubstr("t.csv:6: expected a line mode"));
}

}  // namespace
}  // namespace demarc::study
