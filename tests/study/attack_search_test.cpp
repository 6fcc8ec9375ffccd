// The hunt on an executor whose truth is planted: what it finds, what it says, what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "attack/slowdowns.hpp"
#include "demarc/base/files.hpp"
#include "demarc/base/json.hpp"
#include "demarc/base/random.hpp"
#include "demarc/gpu/launch.hpp"
#include "demarc/study/attack.hpp"
#include "paths.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

bool named(const Workload* neighbour, std::string_view part) {
  return neighbour != nullptr && neighbour->name.find(part) != std::string::npos;
}

// Lanes take everything but what they lack.
NeighbourMeans planted_means() {
  NeighbourMeans means;
  means.bytes = std::uint64_t{1} << 30U;
  means.shared_bytes = gpu::most_shared_bytes;
  means.slice_lines = {0, 128};
  means.lacking[Need::host_memory] = "no host memory here";
  means.lacking[Need::copy_engines] = "no copy engines here";
  return means;
}

// A ground on which stores hurt a little, random ones more, and random stores of one size and shape
// most: 40 %.
double planted_time(const Workload& victim, const Workload* neighbour) {
  double time = victim.name == "b" ? 200 : 100;
  if (victim.name == "b" && named(neighbour, "-store-")) time *= 1.02;
  if (victim.name == "b" && named(neighbour, "-store-random-")) time *= 1.05;
  if (victim.name == "b" && named(neighbour, "-store-random-") && named(neighbour, "MiB")) {
    time *= 1.1;
  }
  if (victim.name == "b" && named(neighbour, "-store-random-") && named(neighbour, "x512")) {
    time *= 1.2;
  }
  return time;
}

AttackPlan plan_of(std::size_t candidates) {
  AttackPlan plan;
  plan.mode = {partition::Mode::mask, true};
  plan.victims = {{"a", "a"}, {"b", "b"}};
  plan.candidates = candidates;
  plan.keep = 4;
  plan.screening = {0, 2, 2, 1, 10};
  plan.proof = {0, 4, 4, 1, 10};
  plan.rounds = 1;
  return plan;
}

const AttackClock no_clock = [] { return 0.0; };

Script planted_script() {
  Script script;
  script.means = planted_means();
  script.time = planted_time;
  return script;
}

Result<AttackResult> hunt(Script& script, const AttackPlan& plan,
                          const AttackClock& clock = no_clock) {
  ScriptedExecutor executor(script);
  return run_attack(plan, executor, {}, clock);
}

TEST(Attack, finds_the_planted_worst_neighbour_and_says_that_the_partition_does_not_hold) {
  Script script = planted_script();
  const auto result = hunt(script, plan_of(400));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->screened.size(), 400U);
  ASSERT_EQ(result->ranked.size(), 4U);
  const RankedNeighbour& worst = result->ranked.front();
  EXPECT_EQ(worst.screened.genes.operation, Operation::store);
  EXPECT_EQ(worst.screened.genes.pattern, Pattern::random);
  EXPECT_EQ(worst.screened.genes.threads, 512U);
  const Slowdown& mean = worst.slowdowns[worst.worst_mean];
  EXPECT_NEAR(mean.mean_percent.value, 100 * (1.02 * 1.05 * 1.1 * 1.2 - 1), 1e-9);
  EXPECT_EQ(mean.victim, 1U);
  EXPECT_EQ(result->verdict, Verdict::not_held);
  EXPECT_THAT(attack_text(*result), AllOf(HasSubstr("DOES NOT HOLD"), HasSubstr("store-random")));
}

TEST(Attack, the_same_seed_gives_the_same_bytes_and_another_one_other_neighbours) {
  const auto json = [](std::uint64_t seed) {
    Script script = planted_script();
    AttackPlan plan = plan_of(60);
    plan.seed = seed;
    return attack_json(hunt(script, plan).value(), "demarc attack");
  };
  const std::string first = json(5);
  EXPECT_TRUE(first == json(5));
  EXPECT_FALSE(Json::parse(first)["screened"] == Json::parse(json(6))["screened"]);
}

TEST(Attack, a_mild_neighbour_that_was_unlucky_in_the_screening_does_not_win) {
  Script script = planted_script();
  // Atomics: now and then a run of four times the time, so that some look dreadful in two runs.
  // Bytes: always 30 %.
  Random noise(11);
  script.time = [&](const Workload& victim, const Workload* neighbour) {
    if (victim.name == "b" && named(neighbour, "-byte-")) return 130.0;
    if (named(neighbour, "-atomic-") && noise.below(30) == 0) return 400.0;
    return 100.0;
  };
  AttackPlan plan = plan_of(150);
  plan.keep = 12;
  plan.proof = {0, 400, 400, 1, 10};
  const auto result = hunt(script, plan);
  ASSERT_TRUE(result) << result.error().message;
  double unlucky = 0;
  for (const Screened& one : result->screened) {
    if (one.genes.operation == Operation::atomic) unlucky = std::max(unlucky, one.percent);
  }
  EXPECT_GT(unlucky, 100);
  EXPECT_EQ(result->ranked.front().screened.genes.operation, Operation::byte);
  const RankedNeighbour& worst = result->ranked.front();
  EXPECT_NEAR(worst.slowdowns[worst.worst_mean].mean_percent.value, 30, 1e-9);
}

TEST(Attack, everybody_who_seemed_to_break_the_limit_is_measured_again_before_it_holds) {
  Script script = planted_script();
  // In the screening, the first two times of a pair, all stores look bad; they never are.
  std::map<std::string, int> seen;
  script.time = [&](const Workload& victim, const Workload* neighbour) {
    if (!named(neighbour, "-store-")) return 100.0;
    return seen[neighbour->name + victim.name]++ < 2 ? 150.0 : 100.0;
  };
  AttackPlan plan = plan_of(200);
  plan.keep = 2;
  const auto result = hunt(script, plan);
  ASSERT_TRUE(result) << result.error().message;
  std::size_t suspects = 0;
  for (const Screened& one : result->screened) suspects += one.percent > plan.limit_percent;
  ASSERT_GT(suspects, 4U);
  for (const auto& [pair, times] : seen) EXPECT_GT(times, 2) << pair;
  EXPECT_EQ(result->uncleared, 0U);
  EXPECT_EQ(result->verdict, Verdict::held);
  EXPECT_EQ(result->ranked.size(), 2U);
}

TEST(Attack, the_first_neighbours_have_every_operation_and_every_pattern_that_is_possible) {
  Script script = planted_script();
  const auto result = hunt(script, plan_of(least_candidates()));
  ASSERT_TRUE(result) << result.error().message;
  for (const OperationRow& row : operations()) {
    const bool possible = row.need == Need::nothing || row.need == Need::module_variables;
    const bool tried =
        std::any_of(result->screened.begin(), result->screened.end(),
                    [&](const Screened& one) { return one.genes.operation == row.operation; });
    EXPECT_EQ(tried, possible) << row.name;
  }
  EXPECT_THAT(result->untried,
              testing::ElementsAre("host_load", "host_store", "copy_in", "copy_out"));
  EXPECT_EQ(result->verdict, Verdict::not_held);
  for (const Refusal& refusal : result->refusals) {
    EXPECT_GT(refusal.count, 0U);
    EXPECT_LT(refusal.count, 20U) << refusal.what;  // what cannot be is not drawn again and again
  }
  EXPECT_THAT(attack_text(*result),
              AllOf(HasSubstr("host_load  no host memory here"),
                    HasSubstr("Never tried: host_load, host_store, copy_in, copy_out")));
  const Json json = Json::parse(attack_json(*result, "x"));
  EXPECT_EQ(json["untried"].size(), 4U);
  EXPECT_EQ(json["refusals"].size(), result->refusals.size());
}

TEST(Attack, operations_that_are_left_out_are_never_tried_and_the_others_are) {
  Script script = planted_script();
  AttackPlan plan = plan_of(120);
  plan.without = {Operation::store, Operation::load};
  const auto result = hunt(script, plan);
  ASSERT_TRUE(result) << result.error().message;
  std::set<Operation> tried;
  std::set<Pattern> patterns_tried;
  for (const Screened& one : result->screened) {
    tried.insert(one.genes.operation);
    patterns_tried.insert(one.genes.pattern);
  }
  EXPECT_FALSE(tried.contains(Operation::store) || tried.contains(Operation::load));
  EXPECT_EQ(tried.size(), operations().size() - 2 - 4) << "four have no place here";
  EXPECT_EQ(patterns_tried.size(), patterns().size());
  EXPECT_EQ(result->verdict, Verdict::held) << "only stores hurt";
  EXPECT_THAT(attack_text(*result), HasSubstr("Left out: store, load\n"));
  EXPECT_THAT(verdict_text(*result),
              HasSubstr("none of 120 neighbours without store, load slows a victim by"));
  EXPECT_EQ(Json::parse(attack_json(*result, "x"))["plan"]["without"], Json({"store", "load"}));
  EXPECT_THAT(attack_text(hunt(script, plan_of(30)).value()), Not(HasSubstr("Left out")));
}

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
  EXPECT_THAT(verdict_text(hunt(script, plan).value()), HasSubstr("slows the kernels of a victim"));
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
  EXPECT_THAT(nothing.error().message, HasSubstr("--without: no operation is left"));
  plan = plan_of(30);
  plan.kernels_alone = true;
  for (const Launches launches : {Launches::graph, Launches::overlapped_graph}) {
    plan.mode.launches = launches;
    EXPECT_THAT(hunt(script, plan).error().message,
                HasSubstr("--kernels-alone: under " + plan.mode.name() + " a time is that of"));
  }
  plan.mode.launches = Launches::overlapped;
  EXPECT_TRUE(hunt(script, plan));
}

TEST(Attack, copies_and_host_memory_reach_lanes_that_give_them_under_specs_of_their_own) {
  Script script = planted_script();
  script.means.lacking.clear();
  const auto result = hunt(script, plan_of(60));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->untried, IsEmpty());
  for (const Screened& one : result->screened) {
    EXPECT_TRUE(one.spec.starts_with(std::string(spec_prefix(one.genes.operation)) + ":/"))
        << one.spec;
  }
}

TEST(Attack, what_the_lanes_refuse_is_counted_by_reason_and_drawn_again) {
  Script script = planted_script();
  int refused = 0;
  script.refuses = [&](const Workload& workload) -> std::string {
    if (workload.name.find("-variable-") != std::string::npos) {
      ++refused;
      return "workload '" + workload.name + "': " + workload.spec.substr(7) + ":3: no colours\n" +
             workload.spec + ":4";
    }
    if (workload.name.find("-byte-") != std::string::npos && ++refused > 0 && refused < 3) {
      return "no room";
    }
    return {};
  };
  const auto result = hunt(script, plan_of(least_candidates()));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(result->untried, Contains("variable"));
  EXPECT_THAT(result->untried, Not(Contains("byte")));
  std::size_t counted = 0;
  for (const Refusal& refusal : result->refusals) {
    if (refusal.what != "variable") continue;
    EXPECT_EQ(refusal.reason, "workload 'it': it:3: no colours") << "the first line";
    counted += refusal.count;
  }
  EXPECT_GT(counted, 1U);
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
    plan.limit_percent = mean_limit;
    plan.limit_tail_percent = tail_limit;
    return hunt(script, plan).value().verdict;
  };
  EXPECT_EQ(verdict(5.001, 8.001), Verdict::held);
  EXPECT_EQ(verdict(4.999, 8.001), Verdict::not_held);
  EXPECT_EQ(verdict(5.001, 7.999), Verdict::not_held);
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
  EXPECT_THAT(verdict_text(*result), HasSubstr("computes something else"));
}

TEST(Attack, a_victim_that_is_wrong_beside_nobody_ends_the_hunt_without_a_verdict) {
  Script script = planted_script();
  script.outputs["mask+color/0"] = {8, true, {}};
  const auto result = hunt(script, plan_of(30));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->verdict, Verdict::undecided);
  EXPECT_THAT(result->failure, HasSubstr("beside -: outputs have digest"));
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
  EXPECT_THAT(result->failure, AllOf(HasSubstr("b beside 00"), HasSubstr(": illegal address")));
  EXPECT_THAT(attack_text(*result), HasSubstr("NO VERDICT, the hunt ended early: b beside 00"));
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
  EXPECT_THAT(verdict_text(*result), HasSubstr("the time was up before every operation"));
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

TEST(Attack, idle_neighbours_are_timed_among_the_others_and_every_part_has_the_neighbour) {
  Script script = planted_script();
  AttackPlan plan = plan_of(least_candidates());
  plan.parts = 3;
  const auto result = hunt(script, plan);
  ASSERT_TRUE(result);
  EXPECT_THAT(script.log, Contains(testing::StartsWith("mask+color/2 start 0001-")));
  // 1 + 18 / 8 idle visits of each victim for the first 18, one for 4 children, one in the proof.
  std::size_t idle = 0;
  bool running = false;
  for (const std::string& entry : script.log) {
    if (entry.starts_with("mask+color/1 start")) running = true;
    if (entry.starts_with("mask+color/1 stop")) running = false;
    if (!running && entry == "mask+color/0 sample a") ++idle;
  }
  EXPECT_EQ(idle, 5U);
}

TEST(Attack, launch_files_of_the_ranked_run_what_was_measured) {
  Script script = planted_script();
  const auto result = hunt(script, plan_of(60));
  ASSERT_TRUE(result) << result.error().message;
  const auto folder = test::fresh_folder("attack_files") / "new";
  ASSERT_TRUE(write_ranked(*result, folder));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files += entry.is_regular_file();
  }
  EXPECT_EQ(files, 2 * result->ranked.size());
  for (std::size_t i = 0; i < result->ranked.size(); ++i) {
    const auto launch = gpu::read_launch(folder / ranked_file(*result, i));
    ASSERT_TRUE(launch) << launch.error().message;
    const Neighbour& genes = result->ranked[i].screened.genes;
    EXPECT_EQ(launch->kernels,
              neighbour_launch(genes, result->means, launch->name, launch->ptx).kernels);
    EXPECT_EQ(read_file(launch->ptx).value(), neighbour_ptx(genes));
  }
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
