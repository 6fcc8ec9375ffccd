// What a study asks of its lanes, in which order, and what it makes of their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

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
  EXPECT_THAT(beside_aggressor(script),
              ElementsAre("mask/1 load a", "mask/2 load a", "mask/1 start a", "mask/2 start a",
                          "mask/1 begins a", "mask/2 begins a", "mask/0 sample v", "mask/1 ended a",
                          "mask/2 ended a", "mask/0 outputs v", "mask/2 stop a", "mask/1 stop a"));
  EXPECT_EQ(result->cells[1].aggressor_rate, 4.0);
  EXPECT_THAT(script.log, Contains("mask/2 finish"));
}

// 30 samples are asked for, ten at a time, and a visit may take two seconds.
TEST(Visit, times_that_a_lane_computes_are_what_a_visit_takes) {
  Plan plan = plan_of("mask");
  plan.rule = {0, 10, 30, 0, 2};
  const auto samples = [&](double seconds) {
    Script script;
    script.computes_times = true;
    script.time = [seconds, late = false](const Workload&, const Workload*) mutable {
      late = !late;
      return seconds * (late ? 1.1e9 : 0.9e9);
    };
    return study(script, plan)->cells[0].samples_ns.size();
  };
  EXPECT_EQ(samples(0.05), 30U);
  EXPECT_EQ(samples(0.15), 20U);
  EXPECT_EQ(samples(0.25), 10U);
}

TEST(Visit, computed_times_do_not_depend_on_how_long_they_take_to_compute) {
  Plan plan = plan_of("mask");
  plan.rule = {0, 1, 3, 0, 1e-6};
  Script script;
  script.computes_times = true;
  script.time = [ns = 1.0](const Workload&, const Workload*) mutable {
    std::this_thread::sleep_for(std::chrono::microseconds(10));
    return ns *= 2;
  };
  const auto result = study(script, plan);
  ASSERT_TRUE(result);
  for (const Cell& cell : result->cells) EXPECT_EQ(cell.samples_ns.size(), 3U);
}

TEST(Visit, an_idle_neighbour_runs_nothing) {
  Script script;
  Plan plan = plan_of("mask");
  ASSERT_TRUE(study(script, plan));
  EXPECT_EQ(std::count(script.log.begin(), script.log.end(), "mask/1 start a"), 1);
  EXPECT_EQ(std::count(script.log.begin(), script.log.end(), "mask/0 sample v"), 2);
}

TEST(Visit, the_other_parts_are_told_that_they_are_idle_and_not_if_an_aggressor_runs) {
  Script script;
  const Plan plan = plan_of("mask", 3);
  ASSERT_TRUE(study(script, plan));
  EXPECT_THAT(script.rested, ElementsAre("mask/1", "mask/2"));
  script.rest = tl::unexpected(broken);
  EXPECT_THAT(study(script, plan)->errors, ElementsAre(HasSubstr("v next to -: broken")));
}

// Neither what it does while the victim warms up nor while its outputs are read counts as work.
TEST(Visit, an_aggressor_must_be_at_work_while_the_victim_is_timed) {
  Script script;
  Plan plan = with_command(plan_of("mask"));
  plan.rule.warm_up = 1;
  ASSERT_TRUE(study(script, plan));
  const auto started = std::find(script.log.begin(), script.log.end(), "mask/1 start a");
  ASSERT_NE(started, script.log.end());
  const std::vector<std::string> seen(started, std::next(started, 7));
  EXPECT_THAT(seen,
              ElementsAre("mask/1 start a", "mask/0 sample v", "mask/1 begins a", "mask/0 sample v",
                          "mask/1 ended a", "mask/0 outputs v", "mask/1 stop a"));
}

TEST(Visit, a_victim_that_fails_while_it_warms_up_is_not_timed) {
  Script script;
  Plan plan = plan_of("mask");
  plan.victims = {{"v", "cmd:v"}};
  plan.rule.warm_up = 1;
  script.faults["mask/0 sample v"] = broken;
  ASSERT_TRUE(study(script, plan));
  EXPECT_EQ(std::count(script.log.begin(), script.log.end(), "mask/0 sample v"), 2)
      << "once next to an idle neighbour and once next to a";
  EXPECT_EQ(std::count(script.log.begin(), script.log.end(), "mask/1 begins a"), 0);
}

TEST(Visit, a_command_that_is_not_at_work_is_an_error_of_its_cell_and_the_study_goes_on) {
  for (const std::string when : {"start", "begins", "ended", "stop"}) {
    Script script;
    script.faults["none/1 " + when + " a"] = broken;
    const auto result = study(script, with_command(plan_of("none,timeslice")));
    ASSERT_TRUE(result) << when;
    ASSERT_EQ(result->cells.size(), 4U) << when;
    EXPECT_THAT(result->errors, ElementsAre("none: v next to a: broken")) << when;
    EXPECT_EQ(result->cells[1].times.count, 0U) << when;
    EXPECT_EQ(result->cells[3].error, "") << when;
    EXPECT_THAT(result->modes[0].victims, IsEmpty()) << when;
    EXPECT_EQ(result->modes[1].victims.size(), 1U) << when;
  }
}

TEST(Visit, a_victim_command_that_fails_is_an_error_of_its_cell_and_the_study_goes_on) {
  Plan plan = plan_of("mask,none");
  plan.victims = {{"v", "cmd:v"}};
  for (const char* kind : {"sample", "outputs"}) {
    Script script;
    script.faults[fmt::format("mask/0 {} v", kind)] = broken;
    const auto result = study(script, plan);
    ASSERT_TRUE(result) << kind;
    EXPECT_THAT(result->errors,
                ElementsAre("mask: v next to -: broken", "mask: v next to a: broken"))
        << kind;
    EXPECT_EQ(result->modes[0].failure, "") << kind;
    EXPECT_EQ(result->modes[1].victims.size(), 1U) << kind;
    EXPECT_THAT(script.log, Contains("mask/1 stop a")) << kind;
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
  script.outputs["none/0"] = {8, true, {}};
  script.faults["none/1 stop a"] = broken;
  EXPECT_THAT(study(script, with_command(plan_of("none")))->cells[1].error,
              HasSubstr("outputs have digest"));
  script.faults["none/1 ended a"] = broken;
  EXPECT_EQ(study(script, with_command(plan_of("none")))->cells[1].error, "broken");
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
    for (const Cell& cell : result->cells) {
      EXPECT_TRUE(cell.mode == 1 || cell.aggressor == std::nullopt) << when << ": the idle one ran";
    }
    EXPECT_THAT(study_text(*result), HasSubstr("mask: FAILED: "));
    EXPECT_THAT(study_text(*result), HasSubstr("ERROR: mask: "));
    const Json json = Json::parse(study_json(*result, "x"));
    EXPECT_EQ(json["modes"][0]["failure"], result->modes[0].failure);
    EXPECT_EQ(json["errors"].size(), 1U);
  }
}

TEST(Visit, a_mode_that_takes_no_cell_is_left_out_and_is_no_error) {
  Script script;
  script.faults["mask/0 load v"] = {ErrorKind::missing_capability, "too little memory"};
  const auto result = study(script, plan_of("mask,none"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->modes[0].unavailable, "too little memory");
  EXPECT_THAT(result->errors, IsEmpty());
  for (const Cell& cell : result->cells) EXPECT_EQ(cell.mode, 1U);
}

// Two aggressors, of which the second is refused.
Plan plan_of_two(const std::string& modes) {
  Plan plan = plan_of(modes);
  plan.aggressors.push_back({"b", "b"});
  plan.rounds = 2;
  return plan;
}

TEST(Visit, a_workload_that_a_part_does_not_take_leaves_out_its_cells_alone) {
  Script script;
  script.faults["mask/1 load b"] = {ErrorKind::missing_capability, "b is too large"};
  const auto result = study(script, plan_of_two("mask,none"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->errors, IsEmpty());
  ASSERT_EQ(result->cells.size(), 6U);
  for (const Cell& cell : result->cells) {
    const bool refused = cell.mode == 0 && cell.aggressor == 1U;
    EXPECT_EQ(cell.times.count == 0, refused);
    EXPECT_EQ(cell.not_run, refused ? "b is too large" : "");
  }
  ASSERT_EQ(result->modes[0].victims.size(), 1U);
  EXPECT_THAT(result->modes[0].victims[0].missing, ElementsAre(1U));
  EXPECT_EQ(result->modes[0].victims[0].worst_for_mean, 0U);
  EXPECT_THAT(result->modes[1].victims[0].missing, IsEmpty());
  EXPECT_EQ(std::count(script.log.begin(), script.log.end(), "mask/1 load b"), 1)
      << "the second round does not try again";
  EXPECT_EQ(recommended_mode(*result), &result->modes[1]) << "the other one did not run everything";
  const std::string text = study_text(*result);
  EXPECT_THAT(text, HasSubstr("\n    without figures next to b\n"));
  EXPECT_THAT(text, HasSubstr("note: mask: v next to b: not run: b is too large\n"));
  const Json json = Json::parse(study_json(*result, "x"));
  EXPECT_EQ(json["modes"][0]["victims"][0]["missing"], Json::array({"b"}));
  EXPECT_EQ(json["cells"][2]["not_run"], "b is too large");
  EXPECT_THAT(study_csv(*result), Not(HasSubstr("mask,v,b,")));
}

// A workload whose bytes are known has a buffer in host memory.
TEST(Visit, what_uses_host_memory_is_left_out_as_a_tenant_before_anything_runs) {
  Script script;
  script.bytes = {{"b", 8}};
  const auto result = study(script, plan_of_two("tenant,none"));
  ASSERT_TRUE(result) << result.error().message;
  for (const Cell& cell : result->cells) {
    EXPECT_EQ(cell.not_run,
              cell.mode == 0 && cell.aggressor == 1U
                  ? "b uses host memory, which the coloured kernels of a tenant cannot reach"
                  : "");
  }
  EXPECT_THAT(script.log, Not(Contains("tenant/1 load b")));
  EXPECT_THAT(script.log, Contains("none/1 load b"));
  Script victim;
  victim.bytes = {{"v", 8}};
  const auto none = study(victim, plan_of_two("tenant,none"));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->modes[0].unavailable,
            "v uses host memory, which the coloured kernels of a tenant cannot reach");
}

// Nothing of it is loaded, wherever it would run.
TEST(Visit, what_needs_more_memory_than_a_part_has_is_left_out_before_anything_runs) {
  Script script;
  script.bytes = {{"v", 1ULL << 30U}, {"a", 4ULL << 30U}, {"b", (4ULL << 30U) + 2}};
  script.room = {{"mask", 4ULL << 30U}};
  const auto result = study(script, plan_of_two("mask,none"));
  ASSERT_TRUE(result) << result.error().message;
  for (const Cell& cell : result->cells) {
    EXPECT_EQ(cell.not_run, cell.mode == 0 && cell.aggressor == 1U
                                ? "b needs 4.0 GiB, and a part has 4.0 GiB"
                                : "");
  }
  EXPECT_THAT(script.log, Not(Contains("mask/1 load b")));
  EXPECT_THAT(script.log, Contains("none/1 load b")) << "there it is not known beforehand";
  Script small;
  small.bytes = script.bytes;
  small.room = {{"mask", 1ULL << 29U}};
  const auto victim = study(small, plan_of_two("mask,none"));
  ASSERT_TRUE(victim);
  EXPECT_EQ(victim->modes[0].unavailable, "v needs 1.0 GiB, and a part has 0.5 GiB");
  EXPECT_THAT(small.log, Not(Contains("mask/0 load v")));
}

TEST(Visit, wrong_input_that_a_visit_finds_is_an_error_of_the_cell) {
  Script script;
  script.faults["mask/1 load b"] = {ErrorKind::invalid_input, "b has no kernel"};
  const auto result = study(script, plan_of_two("mask"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->errors, ElementsAre("mask: v next to b: b has no kernel"));
  EXPECT_THAT(result->modes[0].victims[0].missing, ElementsAre(1U));
  EXPECT_EQ(recommended_mode(*result), nullptr);
}

TEST(Visit, a_mode_that_fails_keeps_what_had_run_and_is_not_recommended) {
  Script script;
  script.faults["mask/1 start b"] = broken;
  Plan plan = plan_of_two("mask");
  for (plan.seed = 0; plan.seed < 8; ++plan.seed) {
    script.log.clear();
    const auto result = study(script, plan);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_THAT(result->modes[0].failure, HasSubstr("v next to b: broken"));
    EXPECT_EQ(recommended_mode(*result), nullptr);
    std::size_t ran = 0;
    for (const char* pair : {"mask/1 stop a", "mask/0 outputs v"}) {
      ran += std::count(script.log.begin(), script.log.end(), pair) != 0 ? 1U : 0U;
    }
    for (const Cell& cell : result->cells) EXPECT_GT(cell.times.count, 0U);
    EXPECT_LE(ran, 2U);
    EXPECT_EQ(result->modes[0].victims.empty(), result->cells.size() < 2);
    if (result->modes[0].victims.empty()) continue;
    EXPECT_THAT(study_text(*result), HasSubstr("Figures of the cells that had run before:"));
    EXPECT_EQ(Json::parse(study_json(*result, "x"))["modes"][0]["victims"].size(), 1U);
  }
}

TEST(Visit, an_end_that_casts_doubt_on_a_mode_takes_its_figures_away) {
  Script script;
  script.faults["mask/1 finish"] = broken;
  const auto result = study(script, plan_of("mask,none"));
  ASSERT_TRUE(result);
  for (const Cell& cell : result->cells) EXPECT_EQ(cell.mode, 1U);
  Script both;
  both.faults = {{"mask/1 start b", broken}, {"mask/0 finish", {ErrorKind::check_failed, "late"}}};
  const auto twice = study(both, plan_of_two("mask,none"));
  ASSERT_TRUE(twice);
  EXPECT_THAT(twice->modes[0].failure, HasSubstr("v next to b: broken")) << "the first error stays";
  for (const Cell& cell : twice->cells) EXPECT_EQ(cell.mode, 1U);
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
              Contains("none: v next to -: c[3] is 4, not 5"));
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
  EXPECT_THAT(remarks_of(*result), ElementsAre("none: v next to a: started again 2 times",
                                               HasSubstr("none: every slowdown is 1.00x")));
  EXPECT_THAT(study_text(*result), HasSubstr("note: none: v next to a: started again 2 times"));
  EXPECT_EQ(Json::parse(study_json(*result, "x"))["cells"][1]["remarks"][0],
            "started again 2 times");
}

}  // namespace
}  // namespace demarc::study
