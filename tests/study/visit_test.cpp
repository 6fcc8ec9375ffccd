// What a study asks of its lanes, in which order, and what it makes of their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/study/study.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Plan plan_of(const std::string& modes, std::uint32_t parts = 2) {
  Plan plan;
  plan.parts = parts;
  plan.modes = parse_modes(modes).value();
  plan.victims = {{"v", "v"}};
  plan.aggressors = {{"a", "a"}};
  plan.rule = {0, 1, 1, 1, 10};
  plan.rounds = 1;
  return plan;
}

Plan with_command(Plan plan) {
  plan.aggressors = {{"a", "cmd:a"}};
  return plan;
}

Result<StudyResult> study(Script& script, const Plan& plan) {
  ScriptedExecutor executor(script);
  return run_study(plan, executor, {});
}

const Error broken{ErrorKind::check_failed, "broken"};

// What the log says of one mode beside its aggressor, lanes sorted as they came.
std::vector<std::string> beside_aggressor(const Script& script) {
  std::vector<std::string> out;
  bool inside = false;
  for (const std::string& entry : script.log) {
    if (entry.ends_with("/1 load a")) inside = true;
    if (inside && !entry.ends_with("finish")) out.push_back(entry);
    if (inside && entry.find("stop") != std::string::npos && entry.find("/1 ") != std::string::npos)
      break;
  }
  return out;
}

TEST(Visit, the_aggressor_runs_in_every_other_part_while_times_are_taken_and_outputs_compared) {
  Script script;
  const auto result = study(script, plan_of("mask", 3));
  ASSERT_TRUE(result);
  EXPECT_THAT(
      beside_aggressor(script),
      ElementsAre("mask/1 load a", "mask/2 load a", "mask/1 start a", "mask/2 start a",
                  "mask/1 begins a", "mask/2 begins a", "mask/0 sample v", "mask/0 outputs v",
                  "mask/1 ended a", "mask/2 ended a", "mask/2 stop a", "mask/1 stop a"));
  EXPECT_EQ(result->cells[1].aggressor_rate, 4.0);
  EXPECT_THAT(script.log, Contains("mask/2 finish"));
}

TEST(Visit, an_idle_neighbour_runs_nothing) {
  Script script;
  Plan plan = plan_of("mask");
  ASSERT_TRUE(study(script, plan));
  EXPECT_EQ(std::count(script.log.begin(), script.log.end(), "mask/1 start a"), 1);
  EXPECT_EQ(std::count(script.log.begin(), script.log.end(), "mask/0 sample v"), 2);
}

TEST(Visit, a_command_that_is_not_at_work_is_an_error_of_its_cell_and_the_study_goes_on) {
  for (const std::string when : {"start", "begins", "ended", "stop"}) {
    Script script;
    script.faults["none/1 " + when + " a"] = broken;
    const auto result = study(script, with_command(plan_of("none,timeslice")));
    ASSERT_TRUE(result) << when;
    ASSERT_EQ(result->cells.size(), 4U) << when;
    EXPECT_THAT(result->errors, ElementsAre("none: v beside a: broken")) << when;
    EXPECT_EQ(result->cells[1].times.count, 0U) << when;
    EXPECT_EQ(result->cells[3].error, "") << when;
    EXPECT_THAT(result->modes[0].victims, IsEmpty()) << when;
    EXPECT_EQ(result->modes[1].victims.size(), 1U) << when;
  }
}

TEST(Visit, aggressors_that_were_started_are_stopped_whatever_goes_wrong) {
  Script script;
  script.faults["mask/2 start a"] = broken;
  ASSERT_TRUE(study(script, plan_of("mask", 3)));
  EXPECT_THAT(script.log, Contains("mask/1 stop a"));
  Script later;
  later.faults["mask/0 outputs v"] = broken;
  ASSERT_TRUE(study(later, plan_of("mask", 3)));
}

TEST(Visit, the_first_error_of_a_cell_stays) {
  Script script;
  script.faults["none/1 ended a"] = broken;
  script.outputs["none/0"] = {8, true, {}};
  const auto result = study(script, with_command(plan_of("none")));
  ASSERT_TRUE(result);
  EXPECT_THAT(result->cells[1].error, HasSubstr("outputs have digest"));
}

TEST(Visit, a_check_that_fails_in_a_mode_is_an_error_of_the_mode_and_the_others_go_on) {
  for (const std::string when :
       {"divide mask", "mask/0 load v", "mask/0 sample v", "mask/0 outputs v", "mask/1 load a",
        "mask/1 start a", "mask/1 begins a", "mask/1 ended a", "mask/1 stop a", "mask/0 finish",
        "mask/1 finish"}) {
    Script script;
    script.faults[when] = broken;
    const auto result = study(script, plan_of("mask,none"));
    ASSERT_TRUE(result) << when;
    EXPECT_THAT(result->modes[0].failure, HasSubstr("broken")) << when;
    EXPECT_EQ(result->modes[0].unavailable, "") << when;
    EXPECT_THAT(result->modes[0].victims, IsEmpty()) << when;
    EXPECT_EQ(result->modes[1].victims.size(), 1U) << when;
    ASSERT_EQ(result->errors.size(), 1U) << when;
    EXPECT_TRUE(result->errors[0].starts_with("mask: ")) << result->errors[0];
    for (const Cell& cell : result->cells) EXPECT_EQ(cell.mode, 1U) << when;
    EXPECT_THAT(study_text(*result), HasSubstr("mask: FAILED: "));
    EXPECT_THAT(study_text(*result), HasSubstr("ERROR: mask: "));
    const Json json = Json::parse(study_json(*result, "x"));
    EXPECT_EQ(json["modes"][0]["failure"], result->modes[0].failure);
    EXPECT_EQ(json["errors"].size(), 1U);
  }
}

TEST(Visit, a_capability_that_is_missed_in_a_visit_leaves_the_mode_out_and_is_no_error) {
  Script script;
  script.faults["mask/0 load v"] = {ErrorKind::missing_capability, "too little memory"};
  const auto result = study(script, plan_of("mask,none"));
  ASSERT_TRUE(result);
  EXPECT_THAT(result->modes[0].unavailable, HasSubstr("too little memory"));
  EXPECT_THAT(result->errors, IsEmpty());
}

TEST(Visit, wrong_input_that_a_mode_finds_ends_the_study) {
  Script script;
  script.faults["divide mask"] = {ErrorKind::invalid_input, "colour 9"};
  EXPECT_EQ(study(script, plan_of("mask,none")).error().message, "colour 9");
}

TEST(Visit, one_mode_that_fails_and_one_that_is_lacking_are_still_a_result) {
  Script script;
  script.faults["divide mask"] = broken;
  script.faults["divide none"] = {ErrorKind::missing_capability, "no"};
  const auto result = study(script, plan_of("mask,none"));
  ASSERT_TRUE(result);
  EXPECT_THAT(result->cells, IsEmpty());
  EXPECT_EQ(result->errors.size(), 1U);
}

TEST(Visit, a_lane_without_times_is_a_failed_check_and_not_an_endless_loop) {
  Script script;
  script.sample.clear();
  const auto result = study(script, plan_of("none"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "the victim's lane gave no times");
}

TEST(Visit, a_victim_that_is_wrong_alone_ends_the_study) {
  Script script;
  script.outputs["whole/0"] = {7, true, "c[3] is 4, not 5"};
  const auto result = study(script, plan_of("none"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::check_failed);
  EXPECT_THAT(result.error().message, HasSubstr("c[3] is 4, not 5"));
  EXPECT_THAT(script.log, Not(Contains("divide none")));
}

TEST(Visit, outputs_are_compared_with_the_reference_and_exact_ones_with_the_solo_run) {
  Script wrong;
  wrong.outputs["none/0"] = {7, true, "c[3] is 4, not 5"};
  EXPECT_THAT(study(wrong, plan_of("none"))->errors,
              Contains("none: v beside -: c[3] is 4, not 5"));
  Script other;
  other.outputs["none/0"] = {8, true, {}};
  EXPECT_EQ(study(other, plan_of("none"))->errors.size(), 2U);
  other.outputs["whole/0"] = {7, false, {}};  // sums in any order
  EXPECT_THAT(study(other, plan_of("none"))->errors, IsEmpty());
}

TEST(Visit, remarks_of_lanes_stand_beside_their_cell) {
  Script script;
  script.remarks["none/1"] = "started again 2 times";
  const auto result = study(script, with_command(plan_of("none")));
  ASSERT_TRUE(result);
  EXPECT_THAT(remarks_of(*result), ElementsAre("none: v beside a: started again 2 times"));
  EXPECT_THAT(study_text(*result), HasSubstr("note: none: v beside a: started again 2 times"));
  EXPECT_EQ(Json::parse(study_json(*result, "x"))["cells"][1]["remarks"][0],
            "started again 2 times");
}

}  // namespace
}  // namespace demarc::study
