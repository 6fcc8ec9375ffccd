// What a hunt says in the end, what it refuses, and what ends it early.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "attack/slowdowns.hpp"
#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "paths.hpp"
#include "planted_hunt.hpp"

namespace demarc::study {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Kernels 3 % slower, whole runs 50 %.
TEST(Attack, where_kernels_alone_are_judged_gaps_between_launches_are_told_and_nothing_more) {
  Measured measured;
  measured.idle.resize(1);
  measured.idle[0].samples_ns = {100, 100};
  measured.idle[0].runs_ns = {200, 200};
  measured.beside = {measured.idle};
  measured.beside[0][0].samples_ns = {103, 103};
  measured.beside[0][0].runs_ns = {300, 300};
  const auto worst = [&](bool kernels_alone) {
    const RankedNeighbour seen = slowdowns_of(measured, 0, kernels_alone);
    EXPECT_EQ(seen.slowdowns.size(), 2U);
    EXPECT_EQ(seen.worst_mean, seen.worst_tail);
    return seen.slowdowns[seen.worst_mean].mean_percent.value;
  };
  EXPECT_NEAR(worst(false), 50, 1e-9);
  EXPECT_NEAR(worst(true), 3, 1e-9);
  Script script = planted_script();
  AttackPlan plan = plan_of(least_candidates());
  plan.kernels_alone = true;
  EXPECT_THAT(attack_text(hunt(script, plan).value()), HasSubstr("The kernels alone are judged"));
  plan.without = {Operation::store};
  EXPECT_THAT(verdict_text(hunt(script, plan).value()), HasSubstr("a victim (its kernels)"));
  plan.without.clear();
  EXPECT_EQ(Json::parse(attack_json(hunt(script, plan).value(), "x"))["plan"]["kernels_alone"],
            true);
}

TEST(Attack, what_leaves_no_operation_or_no_kernel_times_is_refused) {
  Script script = planted_script();
  AttackPlan plan = plan_of(30);
  for (const OperationRow& row : operations()) plan.without.push_back(row.operation);
  const auto nothing = hunt(script, plan);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(nothing.error().message, HasSubstr("--without leaves no operation"));
  plan = plan_of(30);
  plan.kernels_alone = true;
  for (const Launches launches : {Launches::graph, Launches::overlapped_graph}) {
    plan.mode.launches = launches;
    EXPECT_THAT(
        hunt(script, plan).error().message,
        HasSubstr(plan.mode.name() + " does not support --kernels-alone, because it times"));
  }
  plan.mode.launches = Launches::overlapped;
  EXPECT_TRUE(hunt(script, plan));
}

TEST(Attack, where_no_neighbour_can_run_the_machine_lacks_something) {
  Script script = planted_script();
  script.refuses = [](const Workload& workload) {
    return workload.spec.find(':') == std::string::npos ? "" : "never";  // victims are taken
  };
  const auto result = hunt(script, plan_of(30));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::missing_capability);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("load: never"), HasSubstr("copy_in: no")));
}

TEST(Attack, a_partition_that_the_machine_lacks_is_missing) {
  Script script = planted_script();
  script.faults["divide mask+color"] = {ErrorKind::missing_capability, "no masks"};
  EXPECT_EQ(hunt(script, plan_of(30)).error(), script.faults["divide mask+color"]);
}

TEST(Attack, means_and_slow_runs_are_judged_each_by_their_limit) {
  const auto verdict = [](double mean_limit, double tail_limit) {
    Script script = planted_script();
    int runs = 0;
    script.time = [&](const Workload&, const Workload* neighbour) {
      if (neighbour == nullptr) return 100.0;
      return ++runs % 4 == 0 ? 108.0 : 104.0;  // of four runs: mean 105, worst 108
    };
    AttackPlan plan = plan_of(least_candidates());
    plan.max_slowdown = mean_limit;
    plan.max_tail_slowdown = tail_limit;
    return hunt(script, plan).value().verdict;
  };
  EXPECT_EQ(verdict(1.05001, 1.08001), Verdict::held);
  EXPECT_EQ(verdict(1.04999, 1.08001), Verdict::not_held);
  EXPECT_EQ(verdict(1.05001, 1.07999), Verdict::not_held);
}

TEST(Attack, p99_is_given_from_a_thousand_runs_on_and_else_the_worst_of_how_many) {
  const auto tail = [](std::uint32_t runs) {
    Script script = planted_script();
    AttackPlan plan = plan_of(least_candidates());
    plan.proof.least = plan.proof.most = runs;
    return hunt(script, plan).value();
  };
  const AttackResult few = tail(999);
  EXPECT_FALSE(few.ranked[0].slowdowns[0].tail.p99);
  EXPECT_THAT(attack_text(few), AllOf(HasSubstr("worst of 999 runs"), Not(HasSubstr("p99 "))));
  const AttackResult enough = tail(1000);
  EXPECT_TRUE(enough.ranked[0].slowdowns[0].tail.p99);
  EXPECT_THAT(attack_text(enough), AllOf(HasSubstr("p99 "), Not(HasSubstr("worst of"))));
}

TEST(Attack, a_victim_that_computes_something_else_beside_a_neighbour_breaks_the_partition) {
  Script script = planted_script();
  script.time = [&](const Workload&, const Workload* neighbour) {
    script.outputs["mask+color/0"] = {named(neighbour, "-fence-") ? 8U : 7U, true, {}};
    return 100.0;
  };
  const auto result = hunt(script, plan_of(least_candidates()));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->verdict, Verdict::not_held);
  EXPECT_EQ(result->ranked.front().screened.genes.operation, Operation::fence);
  EXPECT_THAT(attack_text(*result), HasSubstr("WRONG RESULT of a victim: outputs have digest"));
  EXPECT_THAT(verdict_text(*result), HasSubstr("computes wrong results"));
}

TEST(Attack, a_victim_that_is_wrong_beside_nobody_ends_the_hunt_without_a_verdict) {
  Script script = planted_script();
  script.outputs["mask+color/0"] = {8, true, {}};
  const auto result = hunt(script, plan_of(30));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->verdict, Verdict::undecided);
  EXPECT_THAT(result->failure, HasSubstr("next to -: outputs have digest"));
}

TEST(Attack, a_check_that_fails_ends_the_hunt_with_what_was_found_so_far_and_no_verdict) {
  Script script = planted_script();
  int runs = 0;
  script.time = [&](const Workload&, const Workload*) {
    if (++runs == 150) {
      script.faults["mask+color/0 outputs b"] = {ErrorKind::check_failed, "illegal address"};
    }
    return 100.0;
  };
  AttackPlan plan = plan_of(400);
  plan.generation = 8;
  const auto result = hunt(script, plan);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(result->screened.size(), 0U);
  EXPECT_LT(result->screened.size(), 40U);
  EXPECT_THAT(result->ranked, IsEmpty());
  EXPECT_EQ(result->verdict, Verdict::undecided);
  EXPECT_THAT(result->failure, AllOf(HasSubstr("b next to 00"), HasSubstr(": illegal address")));
  EXPECT_THAT(attack_text(*result), HasSubstr("NO VERDICT, the hunt ended early: b next to 00"));
  EXPECT_EQ(Json::parse(attack_json(*result, "x"))["failure"], result->failure);
}

TEST(Attack, a_neighbour_that_can_no_longer_be_loaded_when_it_is_measured_again_ends_the_hunt) {
  Script script = planted_script();
  script.time = nullptr;
  std::map<std::string, int> loads;
  script.refuses = [&](const Workload& workload) {
    // Taken once, and loaded for each of two victims.
    return workload.name.size() > 1 && ++loads[workload.name] > 3 ? "no room" : "";
  };
  const auto result = hunt(script, plan_of(least_candidates()));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->verdict, Verdict::undecided);
  EXPECT_THAT(result->failure, HasSubstr(" cannot be measured again: no room"));
}

TEST(Attack, lanes_that_do_not_end_well_cast_doubt_on_all_figures) {
  Script script = planted_script();
  script.time = nullptr;
  script.faults["mask+color/1 finish"] = {ErrorKind::check_failed, "a worker died"};
  const auto result = hunt(script, plan_of(least_candidates()));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->verdict, Verdict::undecided);
  EXPECT_EQ(result->failure, "a worker died");
}

TEST(Attack, a_hunt_whose_time_was_up_before_all_kinds_were_tried_has_no_verdict) {
  Script script = planted_script();
  script.time = nullptr;
  double now = 0;
  const AttackClock clock = [&] { return now++; };
  AttackPlan plan = plan_of(400);
  plan.generation = 4;
  plan.seconds = 3;
  const auto result = hunt(script, plan, clock);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->screened.size(), 8U);
  EXPECT_FALSE(result->complete);
  EXPECT_EQ(result->verdict, Verdict::undecided);
  EXPECT_THAT(verdict_text(*result), HasSubstr("the time ended before every operation"));
  plan.seconds = 1;
  EXPECT_EQ(hunt(script, plan, clock).error().kind, ErrorKind::check_failed);
  plan.seconds = 20;  // the first generation is through, the hunt is short
  const auto enough = hunt(script, plan, clock);
  EXPECT_LT(enough->screened.size(), 400U);
  EXPECT_EQ(enough->verdict, Verdict::held);
}

TEST(Attack, fewer_neighbours_than_the_first_generation_are_refused) {
  Script script = planted_script();
  const auto result = hunt(script, plan_of(least_candidates() - 1));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(result.error().message,
              HasSubstr(fmt::format("--candidates {}: ", least_candidates() - 1)));
}

TEST(Attack, generations_and_rankings_of_nobody_are_refused) {
  Script script = planted_script();
  AttackPlan plan = plan_of(least_candidates());
  plan.generation = 0;
  EXPECT_EQ(hunt(script, plan).error().kind, ErrorKind::invalid_input);
  plan.generation = 1;
  plan.keep = 0;
  EXPECT_EQ(hunt(script, plan).error().kind, ErrorKind::invalid_input);
  plan.keep = 1;
  EXPECT_TRUE(hunt(script, plan));
}

TEST(Attack, limits_below_1_are_refused) {
  for (double AttackPlan::*const limit :
       {&AttackPlan::max_slowdown, &AttackPlan::max_tail_slowdown}) {
    Script script = planted_script();
    AttackPlan plan = plan_of(least_candidates());
    plan.*limit = 1;
    EXPECT_TRUE(hunt(script, plan));
    plan.*limit = 0.99;
    const auto refused = hunt(script, plan);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(refused.error().message,
                HasSubstr("slowdown 0.99: a slowdown is a factor of 1 or more"));
  }
}

TEST(Attack, hunts_that_would_time_nothing_are_refused) {
  Script script = planted_script();
  const auto refused = [&](const AttackPlan& plan, const std::string& option) {
    const auto result = hunt(script, plan);
    ASSERT_FALSE(result) << option;
    EXPECT_EQ(result.error().kind, ErrorKind::invalid_input);
    EXPECT_THAT(result.error().message, testing::StartsWith(option));
  };
  AttackPlan plan = plan_of(least_candidates());
  plan.rounds = 0;
  refused(plan, "--rounds");
  plan = plan_of(least_candidates());
  plan.screening.least = 0;
  refused(plan, "--screen");
  plan = plan_of(least_candidates());
  plan.proof.least = 0;
  refused(plan, "--samples");
}

TEST(Attack, a_folder_that_cannot_be_made_is_an_error_that_names_it) {
  Script script = planted_script();
  const auto result = hunt(script, plan_of(least_candidates()));
  const auto folder = test::fresh_folder("attack_no_folder");
  ASSERT_TRUE(write_file(folder / "file", "x"));
  const auto written = write_ranked(*result, folder / "file");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr((folder / "file").string()));
}

}  // namespace
}  // namespace demarc::study
