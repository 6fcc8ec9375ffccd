// Tests that plans hold every deadline with the fewest TPCs, or say what does not fit.
#include "demarc/sim/schedulability/schedulability.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "schedulability/shares.hpp"

namespace demarc::sim {
namespace {

TaskSet task_set(std::uint32_t tpcs) {
  TaskSet set;
  set.device_name = "test";
  set.spec.topology = gpu::regular_topology(1, tpcs, 2);
  set.spec.sm.threads = 2048;
  set.spec.sm.shared_bytes = 65536;
  return set;
}

// `blocks` blocks of 1024 threads: four at a time on each TPC.
RealTimeTask task(std::string name, Nanoseconds period, std::uint64_t blocks,
                  Nanoseconds block_time) {
  RealTimeTask t;
  t.name = std::move(name);
  t.period = period;
  t.deadline = period;
  t.blocks = blocks;
  t.threads = 1024;
  t.block_times[1] = block_time;
  return t;
}

TEST(Plan, a_task_gets_the_fewest_tpcs_that_hold_its_deadline_then_the_spare_ones) {
  TaskSet set = task_set(4);
  set.tasks = {task("a", 100_ns, 16, 50_ns), task("b", 100_ns, 8, 50_ns)};
  const auto plan = plan_schedule(set).value();
  ASSERT_TRUE(plan.feasible());
  ASSERT_EQ(plan.partitions.size(), 2U);
  EXPECT_EQ(plan.partitions[0].tpcs.size() + plan.partitions[1].tpcs.size(), 4U);
  EXPECT_LE(plan.worst[0], 100_ns);
  EXPECT_EQ(job_time(set, 0, 2), 100_ns);
  EXPECT_EQ(job_time(set, 0, 1), 200_ns);
}

TEST(Plan, tasks_share_a_partition_when_dedicated_ones_do_not_fit) {
  TaskSet set = task_set(1);
  set.tasks = {task("a", 1000_ns, 4, 100_ns), task("b", 2000_ns, 4, 300_ns)};
  const auto plan = plan_schedule(set).value();
  ASSERT_TRUE(plan.feasible());
  ASSERT_EQ(plan.partitions.size(), 1U);
  EXPECT_EQ(plan.partitions[0].bound, 400_ns);
  EXPECT_EQ(plan.worst[1], 400_ns);
}

TEST(Plan, a_task_too_long_for_the_whole_gpu_is_named) {
  TaskSet set = task_set(2);
  set.tasks = {task("fine", 100_ns, 1, 10_ns), task("hopeless", 100_ns, 1, 101_ns)};
  const auto plan = plan_schedule(set).value();
  EXPECT_FALSE(plan.feasible());
  EXPECT_EQ(plan.impossible, (std::vector<std::size_t>{1}));
}

TEST(Plan, tasks_that_fit_alone_but_not_together_are_left_out) {
  TaskSet set = task_set(2);
  set.tasks = {task("a", 100_ns, 8, 90_ns), task("b", 100_ns, 8, 90_ns)};
  const auto plan = plan_schedule(set).value();
  EXPECT_FALSE(plan.feasible());
  EXPECT_EQ(plan.left_out.size(), 1U);
}

// A partition of its own for each would keep kernels waiting for a task slot.
TEST(Plan, there_are_no_more_partitions_than_task_slots_and_hardware_queues) {
  for (const bool slots : {true, false}) {
    TaskSet set = task_set(8);
    (slots ? set.spec.task_slots : set.spec.hardware_queues) = 3;
    for (int i = 0; i < 8; ++i) set.tasks.push_back(task("t", 1000_ns, 1, 100_ns));
    const auto plan = plan_schedule(set).value();
    EXPECT_TRUE(plan.feasible());
    EXPECT_EQ(plan.partitions.size(), 3U);
    std::size_t tasks = 0;
    for (const TaskPartition& partition : plan.partitions) tasks += partition.tasks.size();
    EXPECT_EQ(tasks, 8U);
  }
}

TEST(Plan, partitions_may_grow_when_they_are_merged_for_a_slot_but_not_beyond_the_gpu) {
  // Alone a task of 50 needs one TPC; two of them need 100 on one or 100 on two: none is saved.
  TaskSet set = task_set(4);
  set.spec.task_slots = 1;
  set.tasks = {task("a", 100_ns, 8, 50_ns), task("b", 100_ns, 8, 50_ns)};
  const auto merged = plan_schedule(set).value();
  EXPECT_TRUE(merged.feasible());
  ASSERT_EQ(merged.partitions.size(), 1U);
  EXPECT_EQ(merged.partitions[0].bound, 100_ns);
  EXPECT_EQ(merged.partitions[0].tpcs.size(), 4U);
}

TEST(Plan, tasks_without_a_task_slot_are_named) {
  TaskSet set = task_set(4);
  set.device_name = "test";
  set.spec.task_slots = 1;
  set.tasks = {task("a", 100_ns, 1, 90_ns), task("b", 100_ns, 1, 90_ns)};
  const auto plan = plan_schedule(set).value();
  EXPECT_FALSE(plan.feasible());
  EXPECT_EQ(plan.left_out.size(), 0U);
  EXPECT_EQ(plan.without_slot, (std::vector<std::size_t>{0}));
  EXPECT_NE(plan_text(set, plan).find("no task slot left for: a (1 slots, 32 hardware queues)"),
            std::string::npos);
  EXPECT_NE(plan_json(set, plan).find("\"without_slot\": [\n    \"a\"\n  ]"), std::string::npos);
}

// What each step merges is what looking at all pairs again would merge.
RC_GTEST_PROP(Plan, merging_takes_the_pair_that_saves_most_the_first_of_equals, ()) {
  TaskSet set = task_set(*rc::gen::inRange(1U, 9U));
  const int count = *rc::gen::inRange(2, 12);
  for (int i = 0; i < count; ++i) {
    set.tasks.push_back(task("t", Nanoseconds(*rc::gen::inRange(200ULL, 2000ULL)),
                             *rc::gen::inRange(1ULL, 40ULL),
                             Nanoseconds(*rc::gen::inRange(1ULL, 100ULL))));
  }
  std::vector<Share> list;
  for (std::size_t t = 0; t < set.tasks.size(); ++t) {
    if (auto share = share_of(set, t)) list.push_back(std::move(*share));
  }
  Shares shares(list);
  const std::int64_t least = *rc::gen::inRange(-2, 2);
  for (;;) {
    std::int64_t most = least - 1;
    std::size_t first = 0;
    std::size_t second = 0;
    Share best;
    for (std::size_t a = 0; a < list.size(); ++a) {
      for (std::size_t b = a + 1; b < list.size(); ++b) {
        Share both = list[a];
        both.tasks.insert(both.tasks.end(), list[b].tasks.begin(), list[b].tasks.end());
        both.limit = std::min(both.limit, list[b].limit);
        both.tpcs = 0;
        for (std::uint32_t i = 0; i < both.bounds.size(); ++i) {
          both.bounds[i] += list[b].bounds[i];
          if (both.tpcs == 0 && both.bounds[i] <= both.limit) both.tpcs = i + 1;
        }
        const std::int64_t saved = std::int64_t{list[a].tpcs} + list[b].tpcs - both.tpcs;
        if (both.tpcs == 0 || saved <= most) continue;
        most = saved;
        first = a;
        second = b;
        best = both;
      }
    }
    RC_ASSERT(shares.merge_best(least) == (most >= least));
    if (most < least) break;
    list[first] = best;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(second));
  }
  const auto left = shares.take();
  RC_ASSERT(left.size() == list.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    RC_ASSERT(left[i].tasks == list[i].tasks);
    RC_ASSERT(left[i].tpcs == list[i].tpcs);
  }
}

TEST(Plan, eight_hundred_tasks_are_planned) {
  TaskSet set = task_set(66);
  for (std::uint64_t i = 0; i < 800; ++i)
    set.tasks.push_back(task("t", 1'000'000_ns, 1 + i % 7, Nanoseconds(100 + i % 11)));
  const auto plan = plan_schedule(set).value();
  EXPECT_TRUE(plan.feasible());
  EXPECT_LE(plan.partitions.size(), 32U);
}

TEST(Plan, more_than_can_be_tried_out_is_refused) {
  TaskSet set = task_set(2);
  set.tasks = {task("often", 1_ns, 1, 1_ns), task("seldom", 1'000'000'000'000_ns, 1, 1_ns)};
  const auto far = plan_schedule(set);
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().message.substr(0, 76),
            "task 'often': to try the plan out, 2000000000001 jobs of 1 blocks would be s");
  set.tasks.assign(max_tasks + 1, task("t", 100_ns, 1, 1_ns));
  const auto many = plan_schedule(set);
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().message, "4097 tasks; a plan is made for at most 4096");
}

TEST(Tasks, errors_name_file_and_key) {
  const auto wrong = parse_tasks(R"({"schema": "demarc.tasks/1", "device": "titan-v", "tasks": [
      {"name": "x", "period_us": 10, "blocks": 1, "threads": 32, "block_us": {"0": 5}}]})",
                                 "t.json");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "t.json: tasks[0].block_us.0: expected a number of TPCs and a time");
}

// plan_schedule() itself fails when a simulated response exceeds its bound or deadline.
RC_GTEST_PROP(Plan, feasible_plans_hold_in_the_simulation_with_disjoint_tpcs, ()) {
  TaskSet set = task_set(*rc::gen::inRange(1U, 12U));
  const int count = *rc::gen::inRange(1, 7);
  for (int i = 0; i < count; ++i) {
    set.tasks.push_back(task("t", Nanoseconds(*rc::gen::inRange(50ULL, 2000ULL)),
                             *rc::gen::inRange(1ULL, 40ULL),
                             Nanoseconds(*rc::gen::inRange(1ULL, 200ULL))));
    set.tasks.back().deadline = Nanoseconds(*rc::gen::inRange(50ULL, 2500ULL));
  }
  const auto plan = plan_schedule(set);
  RC_ASSERT(static_cast<bool>(plan));
  std::set<TpcIndex> used;
  std::size_t placed = plan->impossible.size() + plan->left_out.size();
  for (const TaskPartition& partition : plan->partitions) {
    placed += partition.tasks.size();
    for (const TpcIndex tpc : partition.tpcs) RC_ASSERT(used.insert(tpc).second);
    for (const std::size_t t : partition.tasks) {
      RC_ASSERT(plan->worst[t] <= set.tasks[t].deadline);
    }
  }
  RC_ASSERT(placed == set.tasks.size());
}

// By trying every way to deal the tasks to partitions.
std::uint64_t least_by_trying(const TaskSet& set, std::size_t most) {
  const std::size_t n = set.tasks.size();
  std::uint64_t best = ~std::uint64_t{0};
  std::vector<std::size_t> part(n, 0);
  const auto try_all = [&](const auto& self, std::size_t t, std::size_t parts) -> void {
    if (t < n) {
      for (part[t] = 0; part[t] <= parts && part[t] < most; ++part[t]) {
        self(self, t + 1, std::max(parts, part[t] + 1));
      }
      return;
    }
    std::uint64_t sum = 0;
    for (std::size_t p = 0; p < parts; ++p) {
      std::uint32_t tpcs = 1;
      for (; tpcs <= set.spec.topology.tpc_count(); ++tpcs) {
        Nanoseconds time;
        Nanoseconds limit(~std::uint64_t{0});
        for (std::size_t i = 0; i < n; ++i) {
          if (part[i] != p) continue;
          time += job_time(set, i, tpcs);
          limit = std::min({limit, set.tasks[i].period, set.tasks[i].deadline});
        }
        if (time <= limit) break;
      }
      if (tpcs > set.spec.topology.tpc_count()) return;
      sum += tpcs;
    }
    best = std::min(best, sum);
  };
  try_all(try_all, 0, 0);
  return best;
}

RC_GTEST_PROP(LeastTpcs, are_those_of_the_best_way_to_share, ()) {
  TaskSet set = task_set(*rc::gen::inRange(1U, 9U));
  const auto slots = *rc::gen::inRange(1U, 6U);
  set.spec.task_slots = slots;
  const int tasks = *rc::gen::inRange(1, 7);
  for (int t = 0; t < tasks; ++t) {
    set.tasks.push_back(task("t", Nanoseconds(*rc::gen::inRange(200U, 2000U)),
                             *rc::gen::inRange(1U, 40U), Nanoseconds(*rc::gen::inRange(1U, 120U))));
    // Some blocks run longer on more TPCs.
    set.tasks.back().block_times[3] = Nanoseconds(*rc::gen::inRange(1U, 160U));
  }
  const std::uint64_t want = least_by_trying(set, slots);
  const auto least = least_tpcs(set);
  RC_ASSERT(least.has_value() == (want != ~std::uint64_t{0}));
  if (!least) return;
  RC_ASSERT(least->exact);
  RC_ASSERT(least->tpcs == want);
  RC_ASSERT(least->groups.size() <= slots);
  std::set<std::size_t> held;
  std::uint64_t sum = 0;
  for (const TaskGroup& group : least->groups) {
    sum += group.tpcs;
    Nanoseconds time;
    for (const std::size_t t : group.tasks) {
      RC_ASSERT(held.insert(t).second);
      time += job_time(set, t, group.tpcs);
    }
    for (const std::size_t t : group.tasks) {
      RC_ASSERT(time <= std::min(set.tasks[t].period, set.tasks[t].deadline));
    }
  }
  RC_ASSERT(sum == want);
  RC_ASSERT(held.size() == set.tasks.size());
}

TEST(LeastTpcs, of_many_tasks_are_found_and_not_proved_and_may_be_more_than_there_are) {
  TaskSet set = task_set(4);
  for (int t = 0; t < 13; ++t) set.tasks.push_back(task("t", 100_ns, 8, 50_ns));
  const auto least = least_tpcs(set);
  ASSERT_TRUE(least);
  EXPECT_FALSE(least->exact);
  EXPECT_EQ(least->tpcs, 13U) << "each fills its period on one TPC";
  set.tasks.pop_back();
  EXPECT_TRUE(least_tpcs(set)->exact);
  EXPECT_EQ(least_tpcs(set)->tpcs, 12U);
  set.spec.task_slots = 3;
  set.tasks.push_back(task("t", 100_ns, 8, 50_ns));
  EXPECT_FALSE(least_tpcs(set)) << "three partitions hold six such tasks";
  set.tasks = {task("hopeless", 100_ns, 1, 101_ns)};
  EXPECT_FALSE(least_tpcs(set));
}

TEST(Plan, says_the_fewest_tpcs_in_words_and_in_json) {
  TaskSet set = task_set(4);
  set.tasks = {task("a", 1000_ns, 4, 100_ns), task("b", 2000_ns, 4, 300_ns)};
  const auto plan = plan_schedule(set).value();
  EXPECT_NE(plan_text(set, plan).find("1 of 4 TPCs hold every deadline: a + b on 1; no fewer do"),
            std::string::npos)
      << plan_text(set, plan);
  EXPECT_NE(plan_json(set, plan).find("\"exact\": true"), std::string::npos);
}

}  // namespace
}  // namespace demarc::sim
