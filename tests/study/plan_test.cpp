// Tests that each round visits every pair once, and which plans are refused.
#include "demarc/study/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace demarc::study {
namespace {

using testing::HasSubstr;

Plan plan_of(std::size_t victims, std::size_t aggressors) {
  Plan plan;
  plan.modes = {{partition::Mode::none, false},
                {partition::Mode::mask, false},
                {partition::Mode::mask, true}};
  for (std::size_t i = 0; i < victims; ++i) {
    plan.victims.push_back({"v" + std::to_string(i), "v" + std::to_string(i)});
  }
  for (std::size_t i = 0; i < aggressors; ++i) {
    plan.aggressors.push_back({"a" + std::to_string(i), "a" + std::to_string(i)});
  }
  return plan;
}

RC_GTEST_PROP(Plan, a_round_visits_every_pair_and_idle_exactly_once, (std::uint64_t seed)) {
  Plan plan = plan_of(*rc::gen::inRange<std::size_t>(1, 9), *rc::gen::inRange<std::size_t>(1, 6));
  plan.seed = seed;
  const auto visits = visit_order(plan, 1, 0);
  std::set<std::pair<std::size_t, std::size_t>> seen;
  for (const Visit& v : visits) seen.emplace(v.victim, v.aggressor ? *v.aggressor + 1 : 0);
  RC_ASSERT(visits.size() == plan.victims.size() * (plan.aggressors.size() + 1));
  RC_ASSERT(seen.size() == visits.size());
}

RC_GTEST_PROP(Plan, visits_of_one_victim_stay_together, (std::uint64_t seed)) {
  Plan plan = plan_of(5, 3);
  plan.seed = seed;
  const auto visits = visit_order(plan, 0, 2);
  for (std::size_t i = 0; i < visits.size(); ++i) {
    RC_ASSERT(visits[i].victim == visits[i - i % 4].victim);
  }
}

TEST(Plan, the_seed_decides_the_order_and_rounds_differ) {
  Plan plan = plan_of(6, 4);
  plan.seed = 11;
  EXPECT_EQ(visit_order(plan, 0, 0), visit_order(plan, 0, 0));
  EXPECT_NE(visit_order(plan, 0, 0), visit_order(plan, 0, 1));
  const auto before = visit_order(plan, 0, 0);
  plan.seed = 12;
  EXPECT_NE(visit_order(plan, 0, 0), before);
}

TEST(Plan, idle_does_not_always_come_first) {
  Plan plan = plan_of(8, 4);
  const auto visits = visit_order(plan, 0, 0);
  std::set<std::size_t> positions;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    if (!visits[i].aggressor) positions.insert(i % 5);
  }
  EXPECT_GT(positions.size(), 1U);
}

TEST(Plan, modes_are_read_with_and_without_colours) {
  const auto modes = parse_modes("none,mps,mask+color");
  ASSERT_TRUE(modes);
  EXPECT_EQ((*modes)[2], (Mode{partition::Mode::mask, true}));
  EXPECT_EQ((*modes)[2].name(), "mask+color");
  const auto launches = parse_modes("mask+fused,mask+color+overlapped,none+graph");
  ASSERT_TRUE(launches);
  EXPECT_EQ((*launches)[0], (Mode{partition::Mode::mask, false, Launches::fused}));
  EXPECT_EQ((*launches)[1].name(), "mask+color+overlapped");
  EXPECT_FALSE(parse_modes("mask+fused+color"));
  const auto both = parse_modes("mask+graph+overlapped");
  ASSERT_TRUE(both);
  EXPECT_EQ((*both)[0], (Mode{partition::Mode::mask, false, Launches::overlapped_graph}));
  EXPECT_EQ((*both)[0].name(), "mask+graph+overlapped");
  EXPECT_FALSE(parse_modes("mask+overlapped+graph"));
  const auto common = parse_modes("mask+color+graph+common-domain,mps+common-domain,mps");
  ASSERT_TRUE(common);
  EXPECT_EQ((*common)[0], (Mode{partition::Mode::mask, true, Launches::graph, true}));
  EXPECT_EQ((*common)[1].name(), "mps+common-domain");
  EXPECT_FALSE((*common)[2].common_domain);
  EXPECT_EQ((*parse_modes("mask+colour+graph"))[0].name(), "mask+color+graph");
  EXPECT_FALSE(parse_modes("mask+common-domain+color"));
}

TEST(Plan, windows_are_colours_through_small_pages) {
  const auto modes = parse_modes("mask+windows,mask+color,none+windows+fused");
  ASSERT_TRUE(modes) << modes.error().message;
  EXPECT_EQ((*modes)[0].name(), "mask+windows");
  EXPECT_TRUE((*modes)[0].windows);
  EXPECT_TRUE((*modes)[0].divides_memory());
  EXPECT_FALSE((*modes)[1].windows);
  EXPECT_EQ((*modes)[2].name(), "none+windows+fused");
  EXPECT_THAT(parse_modes("mps+windows").error().message,
              HasSubstr("'mps+windows': parts of mps are processes, which have neither colours"));
  EXPECT_THAT(parse_modes("throttle+windows").error().message,
              HasSubstr("throttle has no variant with colours"));
}

TEST(Plan, bundled_kernels_are_known_by_name_and_other_workloads_are_not_looked_for) {
  const auto fault = [](std::string_view list) {
    const auto checked = check_bundled(parse_workloads(list, "--victims").value(), "--victims");
    return checked ? std::string() : checked.error().message;
  };
  EXPECT_EQ(fault("va,copy_in,launch:no/such.json,stream:no/such.txt,chase@chains=64"), "");
  EXPECT_EQ(fault("va,vecad"),
            "--victims: there is no bundled workload 'vecad'; did you mean vecadd? demarc list "
            "workloads shows all");
}

TEST(Plan, an_unknown_or_doubled_mode_is_refused_with_the_near_ones) {
  EXPECT_EQ(parse_modes("none,masc").error().message,
            "--modes: 'masc' is not a mode; did you mean mask? demarc list modes shows all, and "
            "demarc isolate --help what can follow them");
  EXPECT_THAT(parse_modes("maskcolor").error().message, HasSubstr("; did you mean mask+color?"));
  EXPECT_EQ(parse_modes("mask,mask").error().message, "--modes: 'mask' is named twice");
  EXPECT_FALSE(parse_modes(""));
}

TEST(Plan, nothing_can_be_appended_to_tenants) {
  for (const std::string suffix :
       {"+color", "+colour", "+windows", "+graph", "+fused", "+common-domain"}) {
    EXPECT_EQ(parse_modes("none,tenant" + suffix).error().message,
              "--modes: 'tenant" + suffix +
                  "': nothing can be appended to tenant, because its parts have colours and memory "
                  "synchronisation domains, and launches of programs are not changed");
  }
  const auto modes = parse_modes("mask,mask+color,tenant");
  ASSERT_TRUE(modes) << modes.error().message;
  EXPECT_FALSE(modes->at(0).divides_memory());
  EXPECT_TRUE(modes->at(1).divides_memory());
  EXPECT_TRUE(modes->at(2).divides_memory());
}

TEST(Plan, modes_of_one_process_without_colours_are_named_so) {
  for (const std::string name : {"throttle", "preempt"}) {
    EXPECT_EQ(parse_modes(name + "+color").error().message,
              "--modes: '" + name + "+color': " + name +
                  " has no variant with colours; none, green, mask, affinity have one");
    EXPECT_TRUE(parse_modes(name + "+graph"));
  }
}

TEST(Plan, processes_have_neither_colours_nor_changed_launches) {
  for (const char* refused : {"mps+color", "timeslice+graph", "mps+fused"}) {
    const auto modes = parse_modes(refused);
    ASSERT_FALSE(modes) << refused;
    EXPECT_NE(modes.error().message.find("are processes, which have neither colours"),
              std::string::npos);
  }
}

TEST(Plan, workloads_are_named_by_what_they_are) {
  const auto list = parse_workloads("mm,launch:dir/lstm.json,cmd:python3 train.py", "--victims");
  ASSERT_TRUE(list);
  EXPECT_EQ((*list)[0], (Workload{"mm", "mm"}));
  EXPECT_EQ((*list)[1], (Workload{"lstm", "launch:dir/lstm.json"}));
  EXPECT_EQ((*list)[2], (Workload{"python3 train.py", "cmd:python3 train.py"}));
  const auto name_of = [](const char* text) {
    return parse_workloads(text, "--victims")->front().name;
  };
  EXPECT_EQ(name_of("launch:mm.json"), "mm");
  EXPECT_EQ(name_of("launch:a@b/mm.json@large"), "mm@large");
  EXPECT_EQ(name_of("launch:mm.jsonl"), "mm.jsonl");
  EXPECT_EQ(parse_workloads("stream:a/b/x.txt", "--victims")->front().name, "x.txt");
  EXPECT_EQ(parse_workloads("mm,,va", "--victims").error().message,
            "--victims: an entry of 'mm,,va' is empty; separate names by commas");
  EXPECT_EQ(parse_workloads("mm,va,mm", "--victims").error().message,
            "--victims: 'mm' is named twice");
}

TEST(Plan, impossible_plans_are_refused_by_name) {
  Plan plan = plan_of(1, 1);
  plan.parts = 5;
  EXPECT_EQ(check_plan(plan).error().message,
            "--parts: 5 is out of range; a GPU is divided into 2, 3 or 4 parts");
  plan.parts = 4;
  EXPECT_TRUE(check_plan(plan));
  plan.parts = 1;
  EXPECT_FALSE(check_plan(plan));
  plan.parts = 2;
  EXPECT_TRUE(check_plan(plan));
  plan.aggressors.clear();
  EXPECT_EQ(check_plan(plan).error().message, "the study has no aggressor; name at least one");
  plan = plan_of(1, 1);
  plan.victims.clear();
  EXPECT_EQ(check_plan(plan).error().message, "the study has no victim; name at least one");
  plan = plan_of(1, 1);
  plan.modes.clear();
  EXPECT_EQ(check_plan(plan).error().message, "--modes: no mode is named");
  plan = plan_of(1, 1);
  plan.rule.least = 401;
  EXPECT_EQ(check_plan(plan).error().message,
            "--samples: from 401 to 400 samples per visit are not possible; the first number must "
            "be at least 1 and not above the second");
  plan.rule.least = 400;
  EXPECT_TRUE(check_plan(plan));
  plan.rule.least = 0;
  EXPECT_FALSE(check_plan(plan));
  plan.rule.least = 1;
  EXPECT_TRUE(check_plan(plan));
  plan.aggressors.push_back(plan.aggressors.front());
  EXPECT_EQ(check_plan(plan).error().message, "aggressor 'a0' is named twice: give each once");
}

TEST(Plan, rounds_and_warm_up_that_would_run_for_ever_are_refused) {
  Plan plan = plan_of(1, 1);
  plan.rounds = 1000;
  plan.rule.warm_up = 100000;
  EXPECT_TRUE(check_plan(plan));
  plan.rounds = 1001;
  EXPECT_EQ(check_plan(plan).error().message, "--rounds: 1001 is out of range; it is 1 to 1000");
  plan.rounds = 0;
  EXPECT_FALSE(check_plan(plan));
  plan.rounds = 1;
  plan.rule.warm_up = 100001;
  EXPECT_EQ(check_plan(plan).error().message,
            "--warm-up: 100001 launches are too many; at most 100000");
}

TEST(Plan, p99_takes_a_thousand_samples_over_the_rounds_of_a_cell_and_no_fewer_than_asked_for) {
  Plan plan = plan_of(1, 1);
  plan.rounds = 3;
  carry_p99(plan);
  EXPECT_EQ(plan.rule.least, 334U);
  EXPECT_EQ(plan.rule.most, 400U);
  plan.rounds = 1;
  carry_p99(plan);
  EXPECT_EQ(plan.rule.least, 1000U);
  EXPECT_EQ(plan.rule.most, 1000U);
  plan.rule.least = 1500;
  plan.rule.most = 2000;
  carry_p99(plan);
  EXPECT_EQ(plan.rule.least, 1500U);
  EXPECT_EQ(plan.rule.most, 2000U);
}

TEST(Plan, a_mode_that_would_leave_a_command_outside_is_refused_by_name) {
  Plan plan = plan_of(1, 1);
  plan.aggressors.push_back({"train", "cmd:train"});
  for (const std::string name : {"none", "timeslice", "mps", "mask", "tenant"}) {
    plan.modes = parse_modes(name).value();
    EXPECT_TRUE(check_plan(plan)) << name;
  }
  for (const std::string name : {"green", "affinity", "preempt", "mask+color", "none+color",
                                 "mask+graph", "mask+overlapped", "none+fused"}) {
    plan.modes = parse_modes("none," + name).value();
    const auto refused = check_plan(plan);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_TRUE(refused.error().message.starts_with("--modes: '" + name +
                                                    "' cannot keep the command 'train' inside"))
        << refused.error().message;
    EXPECT_TRUE(refused.error().message.ends_with(
        "modes for commands are none,timeslice,mps,mask,throttle,tenant"))
        << refused.error().message;
    plan.aggressors.pop_back();
    EXPECT_TRUE(check_plan(plan)) << name;
    plan.aggressors.push_back({"train", "cmd:train"});
  }
}

TEST(Plan, a_command_may_be_a_victim_where_it_stays_in_its_part) {
  Plan plan = plan_of(1, 1);
  plan.aggressors.push_back({"load", "cmd:load"});
  EXPECT_EQ(first_command(plan), &plan.aggressors.back());
  EXPECT_EQ(words_on_commands(plan), "");
  plan.victims.push_back({"train", "cmd:train"});
  EXPECT_EQ(first_command(plan), &plan.victims.back());
  EXPECT_EQ(words_on_commands(plan),
            "A time of a command is that of a run, from its first kernel launch to its end.");
  plan.modes = {Mode{partition::Mode::mask}};
  EXPECT_TRUE(check_plan(plan));
  plan.modes = {Mode{partition::Mode::green}};
  EXPECT_THAT(check_plan(plan).error().message,
              testing::HasSubstr("--modes: 'green' cannot keep the command 'train' inside"));
}

}  // namespace
}  // namespace demarc::study
