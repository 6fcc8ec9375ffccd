#include "demarc/sim/schedulability.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

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
RealTimeTask task(std::string name, std::uint64_t period, std::uint64_t blocks,
                  std::uint64_t block_ns) {
  RealTimeTask t;
  t.name = std::move(name);
  t.period_ns = period;
  t.deadline_ns = period;
  t.blocks = blocks;
  t.threads = 1024;
  t.block_ns[1] = block_ns;
  return t;
}

TEST(Plan, a_task_gets_the_fewest_tpcs_that_hold_its_deadline_then_the_spare_ones) {
  TaskSet set = task_set(4);
  set.tasks = {task("a", 100, 16, 50), task("b", 100, 8, 50)};
  const auto plan = plan_schedule(set).value();
  ASSERT_TRUE(plan.feasible());
  ASSERT_EQ(plan.partitions.size(), 2U);
  EXPECT_EQ(plan.partitions[0].tpcs.size() + plan.partitions[1].tpcs.size(), 4U);
  EXPECT_LE(plan.worst_ns[0], 100U);
  EXPECT_EQ(job_time_ns(set, 0, 2), 100U);
  EXPECT_EQ(job_time_ns(set, 0, 1), 200U);
}

TEST(Plan, tasks_share_a_partition_when_dedicated_ones_do_not_fit) {
  TaskSet set = task_set(1);
  set.tasks = {task("a", 1000, 4, 100), task("b", 2000, 4, 300)};
  const auto plan = plan_schedule(set).value();
  ASSERT_TRUE(plan.feasible());
  ASSERT_EQ(plan.partitions.size(), 1U);
  EXPECT_EQ(plan.partitions[0].bound_ns, 400U);
  EXPECT_EQ(plan.worst_ns[1], 400U);
}

TEST(Plan, a_task_too_long_for_the_whole_gpu_is_named) {
  TaskSet set = task_set(2);
  set.tasks = {task("fine", 100, 1, 10), task("hopeless", 100, 1, 101)};
  const auto plan = plan_schedule(set).value();
  EXPECT_FALSE(plan.feasible());
  EXPECT_EQ(plan.impossible, (std::vector<std::size_t>{1}));
}

TEST(Plan, tasks_that_fit_alone_but_not_together_are_left_out) {
  TaskSet set = task_set(2);
  set.tasks = {task("a", 100, 8, 90), task("b", 100, 8, 90)};
  const auto plan = plan_schedule(set).value();
  EXPECT_FALSE(plan.feasible());
  EXPECT_EQ(plan.left_out.size(), 1U);
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
    set.tasks.push_back(task("t", *rc::gen::inRange(50ULL, 2000ULL), *rc::gen::inRange(1ULL, 40ULL),
                             *rc::gen::inRange(1ULL, 200ULL)));
    set.tasks.back().deadline_ns = *rc::gen::inRange(50ULL, 2500ULL);
  }
  const auto plan = plan_schedule(set);
  RC_ASSERT(static_cast<bool>(plan));
  std::set<std::uint32_t> used;
  std::size_t placed = plan->impossible.size() + plan->left_out.size();
  for (const TaskPartition& partition : plan->partitions) {
    placed += partition.tasks.size();
    for (const std::uint32_t tpc : partition.tpcs) RC_ASSERT(used.insert(tpc).second);
    for (const std::size_t t : partition.tasks) {
      RC_ASSERT(plan->worst_ns[t] <= set.tasks[t].deadline_ns);
    }
  }
  RC_ASSERT(placed == set.tasks.size());
}

}  // namespace
}  // namespace demarc::sim
