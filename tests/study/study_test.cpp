// Tests that a study recovers planted interference, and what it refuses and reports.
#include "demarc/study/study.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/base/json.hpp"
#include "demarc/study/planted.hpp"

namespace demarc::study {
namespace {

PlantedModel small_model() {
  PlantedModel model;
  model.name = "small";
  model.workloads = {{"stream", {100e3, 0.1, 2.0}}, {"mm", {300e3, 0.9, 0.3}}};
  return model;
}

Plan small_plan() {
  Plan plan;
  plan.modes = {{partition::Mode::none, false},
                {partition::Mode::mask, false},
                {partition::Mode::mask, true}};
  plan.victims = {{"stream", "stream"}, {"mm", "mm"}};
  plan.aggressors = {{"mm", "mm"}, {"stream", "stream"}};
  plan.rule.least = 100;
  plan.rule.most = 300;
  plan.seed = 7;
  return plan;
}

double planted_variation(const PlantedModel& model, const Plan& plan, std::size_t mode,
                         std::size_t victim) {
  const PlantedDemand& demand = model.workloads.at(plan.victims[victim].spec);
  const double idle = planted_time(model, demand, nullptr, plan.modes[mode], plan.parts);
  double worst = -1e9;
  for (const Workload& b : plan.aggressors) {
    const double loaded =
        planted_time(model, demand, &model.workloads.at(b.spec), plan.modes[mode], plan.parts);
    worst = std::max(worst, 100 * (loaded / idle - 1));
  }
  return worst;
}

class PlantedStudy : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(PlantedStudy, recovers_the_planted_variation_of_every_victim_in_every_mode) {
  const PlantedModel model = small_model();
  Plan plan = small_plan();
  plan.parts = GetParam();
  const auto executor = make_planted_executor(model, 5);
  const auto result = run_study(plan, *executor, {});
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->modes.size(), 3U);
  for (const ModeSummary& mode : result->modes) {
    ASSERT_EQ(mode.victims.size(), 2U);
    for (const Variation& row : mode.victims) {
      const double truth = planted_variation(model, plan, mode.mode, row.victim);
      EXPECT_NEAR(row.mean_percent.value, truth, 0.005 * (100 + truth))
          << plan.modes[mode.mode].name() << " " << plan.victims[row.victim].name;
      EXPECT_LT(row.mean_percent.low, row.mean_percent.value);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(parts, PlantedStudy, ::testing::Values(2U, 3U, 4U));

TEST(Study, what_a_partition_costs_beside_an_idle_neighbour_is_normalised_by_parts) {
  const auto executor = make_planted_executor(small_model(), 5);
  const auto result = run_study(small_plan(), *executor, {});
  ASSERT_TRUE(result);
  // mask, stream: compute share doubles, memory share stays: 0.1 * 2 + 0.9 of the solo time,
  // over 2.
  EXPECT_NEAR(result->modes[1].victims[0].overhead, 1.1 / 2, 0.01);
  // with colours the memory share doubles too.
  EXPECT_NEAR(result->modes[2].victims[0].overhead, 1.0, 0.01);
}

TEST(Study, the_same_seed_gives_the_same_bytes) {
  const auto run = [] {
    const auto executor = make_planted_executor(small_model(), 5);
    return study_json(run_study(small_plan(), *executor, {}).value(), "demarc isolate");
  };
  EXPECT_TRUE(run() == run());
}

TEST(Study, a_victim_with_wrong_outputs_is_an_error_and_not_a_timing) {
  PlantedModel model = small_model();
  model.workloads["mm"].wrong_under_load = true;
  const auto executor = make_planted_executor(model, 5);
  const auto result = run_study(small_plan(), *executor, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->errors.size(), 6U);  // mm beside 2 aggressors in 3 modes
  EXPECT_TRUE(result->errors.front().starts_with("none: mm next to mm: outputs have digest"));
  for (const ModeSummary& mode : result->modes) {
    ASSERT_EQ(mode.victims.size(), 1U);
    EXPECT_EQ(mode.victims[0].victim, 0U);
  }
  for (const Cell& cell : result->cells) {
    EXPECT_EQ(cell.times.count == 0, cell.victim == 1 && cell.aggressor.has_value());
  }
  EXPECT_EQ(result->recommendation,
            "No mode ran every victim with correct results, so there is nothing to recommend.");
}

TEST(Study, a_mode_the_machine_lacks_is_noted_and_the_others_run) {
  PlantedModel model = small_model();
  model.unavailable[partition::Mode::mask] = "driver 999.1 is unknown";
  const auto executor = make_planted_executor(model, 5);
  const auto result = run_study(small_plan(), *executor, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->modes[1].unavailable, "driver 999.1 is unknown");
  EXPECT_TRUE(result->modes[1].victims.empty());
  EXPECT_EQ(result->modes[0].victims.size(), 2U);
  EXPECT_EQ(result->cells.size(), 6U);
}

TEST(Study, a_synthetic_card_has_no_windows) {
  Plan plan = small_plan();
  plan.modes = parse_modes("mask,mask+windows").value();
  const auto executor = make_planted_executor(small_model(), 5);
  const auto result = run_study(plan, *executor, {});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->modes[0].unavailable, "");
  EXPECT_EQ(result->modes[1].unavailable,
            "mask+windows: a synthetic card has no page tables, so it has no windows");
}

TEST(Study, lacking_every_mode_is_exit_code_2_and_says_why) {
  PlantedModel model = small_model();
  model.unavailable[partition::Mode::mask] = "driver 999.1 is unknown";
  Plan plan = small_plan();
  plan.modes = {{partition::Mode::mask, false}};
  const auto executor = make_planted_executor(model, 5);
  const auto result = run_study(plan, *executor, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(result.error().message,
            "planted:small can run none of the chosen modes:\n  mask: driver 999.1 is unknown");
}

TEST(Study, an_unknown_workload_is_refused_with_the_list) {
  Plan plan = small_plan();
  plan.victims.push_back({"quicksort", "quicksort"});
  const auto executor = make_planted_executor(small_model(), 5);
  EXPECT_EQ(
      run_study(plan, *executor, {}).error().message,
      "'quicksort' is not a workload of the planted model 'small'; its workloads are mm, stream");
}

TEST(Study, the_stopping_rule_bounds_the_samples_of_a_visit) {
  Plan plan = small_plan();
  plan.rounds = 1;
  plan.rule = {3, 20, 50, 1e-9, 2};  // a precision never reached
  const auto executor = make_planted_executor(small_model(), 5);
  const auto noisy = run_study(plan, *executor, {});
  ASSERT_TRUE(noisy);
  for (const Cell& cell : noisy->cells) {
    EXPECT_EQ(cell.samples_ns.size(), 50U);
    EXPECT_EQ(cell.discarded, 3U);
  }
  plan.rule.precision = 1;  // reached at once
  const auto quick = run_study(plan, *make_planted_executor(small_model(), 5), {});
  for (const Cell& cell : quick->cells) EXPECT_EQ(cell.samples_ns.size(), 20U);
}

TEST(Study, a_precision_reached_early_does_not_stop_before_there_is_a_p99_that_was_asked_for) {
  Plan plan = small_plan();
  plan.modes = {{partition::Mode::mask, false}};
  plan.rule.precision = 1;  // reached at once
  carry_p99(plan);
  const auto result = run_study(plan, *make_planted_executor(small_model(), 5), {});
  ASSERT_TRUE(result);
  for (const Cell& cell : result->cells) EXPECT_EQ(cell.times.count, 1000U);
  for (const Variation& row : result->modes[0].victims) EXPECT_TRUE(row.tail.p99);
}

TEST(Study, json_carries_schema_context_plan_and_raw_samples) {
  Plan plan = small_plan();
  plan.rounds = 1;
  const auto executor = make_planted_executor(small_model(), 5);
  const auto result = run_study(plan, *executor, {});
  const Json json = Json::parse(study_json(*result, "demarc isolate --seed 7"));
  EXPECT_EQ(json["schema"], "demarc.isolate/4");
  EXPECT_EQ(json["context"]["command"], "demarc isolate --seed 7");
  EXPECT_EQ(json["context"]["measured"], false);
  EXPECT_EQ(json["plan"]["modes"], Json({"none", "mask", "mask+color"}));
  ASSERT_EQ(json["cells"].size(), 18U);
  EXPECT_EQ(json["cells"][0]["aggressor"], nullptr);
  EXPECT_EQ(json["cells"][0]["samples_ns"].size(), json["cells"][0]["times_ns"]["count"]);
  EXPECT_EQ(json["modes"][2]["victims"][0]["victim"], "stream");
}

TEST(Study, the_table_says_when_a_model_answered) {
  const auto executor = make_planted_executor(small_model(), 5);
  const auto result = run_study(small_plan(), *executor, {});
  EXPECT_NE(study_text(*result).find("A MODEL ANSWERED: these figures are not measurements."),
            std::string::npos);
}

TEST(Study, progress_ends_at_one_and_never_goes_back) {
  double last = -1;
  bool ordered = true;
  const auto executor = make_planted_executor(small_model(), 5);
  RunOptions options;
  options.progress = [&](double share, std::string_view) {
    ordered = ordered && share >= last;
    last = share;
  };
  ASSERT_TRUE(run_study(small_plan(), *executor, options));
  EXPECT_TRUE(ordered);
  EXPECT_EQ(last, 1.0);
}

}  // namespace
}  // namespace demarc::study
