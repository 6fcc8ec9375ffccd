// Figures that no card gives are planted, and named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/study/study.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A victim under `mask`, alone for 100 ns, and next to one neighbour.
StudyResult study_beside(const std::vector<double>& times, bool color = false) {
  StudyResult result;
  result.plan.parts = 2;
  result.plan.rounds = 1;
  result.plan.modes = {{partition::Mode::mask, color}};
  result.plan.victims = {{"cfd", "cfd"}};
  result.plan.aggressors = {{"va", "va"}};
  result.device.device = "sim:v100";
  result.device.measured = false;
  result.modes.resize(1);
  Baseline baseline;
  baseline.times.mean = 50;
  result.baselines.push_back(baseline);
  for (const bool idle : {true, false}) {
    Cell cell;
    if (!idle) cell.aggressor = 0;
    cell.samples_ns = idle ? std::vector<double>(times.size(), 100) : times;
    cell.visits = 1;
    cell.times = cell.runs = describe(cell.samples_ns);
    result.cells.push_back(std::move(cell));
  }
  summarize(result);
  result.impossible = impossible_figures(result);
  return result;
}

TEST(Impossible, a_victim_that_is_faster_next_to_a_neighbour_is_named) {
  const StudyResult result = study_beside({97, 97, 97});
  ASSERT_THAT(result.impossible,
              ElementsAre("mask: next to va, cfd takes 0.970x of its time next to idle neighbours, "
                          "and its runs differ by less than that; but a neighbour does not make a "
                          "victim faster"));
  EXPECT_THAT(study_text(result), HasSubstr("\nCANNOT BE RIGHT: mask: next to va, cfd takes"));
  EXPECT_EQ(Json::parse(study_json(result, ""))["impossible"][0], result.impossible[0]);
  const auto checked = check_possible(result);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(checked.error().message, HasSubstr("1 of the study's figures cannot be right"));
}

TEST(Impossible, a_gain_on_shared_sms_is_not_named) {
  StudyResult result = study_beside({97, 97, 97});
  result.plan.modes = {{partition::Mode::none}};
  EXPECT_THAT(impossible_figures(result), IsEmpty());
}

TEST(Impossible, a_table_in_which_only_whole_runs_or_slow_runs_are_longer_is_not_empty) {
  StudyResult result = study_beside({100, 100});
  EXPECT_THAT(empty_tables(result), Not(IsEmpty()));
  result.modes[0].victims[0].run_percent.value = 1;
  EXPECT_THAT(empty_tables(result), IsEmpty());
  result.modes[0].victims[0].run_percent.value = 0;
  result.modes[0].victims[0].missing = {0};
  EXPECT_THAT(empty_tables(result), IsEmpty());
  EXPECT_THAT(empty_tables(study_beside({100, 100, 100, 101})), IsEmpty());
}

TEST(Impossible, a_gain_within_two_per_cent_or_within_the_noise_is_not_named) {
  EXPECT_THAT(study_beside({98, 98, 98}).impossible, Not(IsEmpty()));
  EXPECT_THAT(study_beside({98.1, 98.1, 98.1}).impossible, IsEmpty());
  EXPECT_THAT(study_beside({80, 97, 110}).impossible, IsEmpty());
  EXPECT_THAT(study_beside({100, 100}).impossible, IsEmpty());
  EXPECT_TRUE(check_possible(study_beside({100, 100})));
}

// One run has no interval; a model's repeats exactly, a card's does not.
TEST(Impossible, one_run_of_a_model_is_enough_and_one_of_a_card_is_not) {
  StudyResult result = study_beside({90});
  EXPECT_EQ(result.impossible.size(), 1U);
  result.device.measured = true;
  EXPECT_THAT(impossible_figures(result), IsEmpty());
}

TEST(Impossible, what_a_card_measured_is_in_doubt_and_no_error) {
  StudyResult result = study_beside({90, 90, 90});
  result.device.measured = true;
  EXPECT_EQ(impossible_figures(result).size(), 1U);
  EXPECT_TRUE(check_possible(result));
  const std::string text = study_text(result);
  EXPECT_THAT(text, HasSubstr("\nnote: in doubt: mask: next to va, cfd takes 0.900x"));
  EXPECT_THAT(text, Not(HasSubstr("CANNOT BE RIGHT")));
}

TEST(Impossible, a_hit_rate_of_the_forecast_above_one_or_below_zero_is_named) {
  StudyResult result = study_beside({110, 110});
  WorkloadForecast row;
  row.name = "nn";
  row.l2_hit_rate = 1;
  row.half_l2_hit_rate = 0;
  result.forecast.victims = {row};
  EXPECT_THAT(impossible_figures(result), IsEmpty());
  result.forecast.victims[0].l2_hit_rate = 1.25;
  row.half_l2_hit_rate = -0.5;
  result.forecast.aggressors = {row};
  EXPECT_THAT(impossible_figures(result),
              ElementsAre("forecast of nn: a hit rate of 1.25 is not between 0 and 1",
                          "forecast of nn: a hit rate of -0.5 is not between 0 and 1"));
  result.forecast.aggressors[0].missing = "no PTX";
  EXPECT_EQ(impossible_figures(result).size(), 1U) << "a row without figures has none";
}

TEST(Impossible, a_hit_rate_above_one_is_named_where_nothing_but_the_forecast_is_asked_for) {
  Script script;
  const ScriptedExecutor executor(script);
  Plan plan;
  plan.modes = parse_modes("mask").value();
  Forecast forecast;
  WorkloadForecast row;
  row.name = "nn";
  row.l2_hit_rate = 1.25;
  forecast.victims = {row};
  EXPECT_THAT(study_of_forecast(plan, executor, forecast).impossible,
              ElementsAre("forecast of nn: a hit rate of 1.25 is not between 0 and 1"));
}

TEST(Impossible, a_mode_in_which_every_slowdown_is_one_is_said_unless_its_colours_say_why) {
  const auto said = HasSubstr("mask: every slowdown is 1.00x, so these neighbours use nothing");
  StudyResult none = study_beside({100, 100});
  EXPECT_THAT(remarks_of(none), ElementsAre(said));
  EXPECT_THAT(study_text(none), HasSubstr("note: mask: every slowdown is 1.00x"));
  EXPECT_THAT(Json::parse(study_json(none, ""))["remarks"][0].get<std::string>(), said);
  EXPECT_THAT(remarks_of(study_beside({100.49, 100.49})), ElementsAre(said));
  EXPECT_THAT(remarks_of(study_beside({100.51, 100.51})), IsEmpty());
  none.interrupted = "the study was ended early";
  EXPECT_THAT(empty_tables(none), IsEmpty()) << "the cells that are left may show more";
  StudyResult colored = study_beside({100, 100}, true);
  EXPECT_THAT(remarks_of(colored), IsEmpty());
  colored.device.measured = true;
  EXPECT_THAT(remarks_of(colored), ElementsAre(HasSubstr("mask+color: every slowdown is 1.00x")));
}

// The whole way: a study whose neighbour speeds its victim up.
TEST(Impossible, a_study_says_what_its_executor_answered_wrongly) {
  Script script;
  script.time = [](const Workload&, const Workload* neighbour) {
    return neighbour == nullptr ? 100.0 : 90.0;
  };
  ScriptedExecutor executor(script);
  Plan plan;
  plan.modes = parse_modes("mask").value();
  plan.victims = parse_workloads("mm", "victims").value();
  plan.aggressors = parse_workloads("va", "aggressors").value();
  plan.rule = {0, 2, 2, 0.01, 10};
  plan.rounds = 1;
  const auto result = run_study(plan, executor, {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->impossible, ElementsAre(HasSubstr("mask: next to va, mm takes 0.900x")));
}

}  // namespace
}  // namespace demarc::study
