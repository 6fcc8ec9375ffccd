// What scenarios and task sets may say, each limit from both sides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/sim/pipeline/scenario.hpp"
#include "demarc/sim/schedulability/schedulability.hpp"

namespace demarc::sim {
namespace {

using testing::HasSubstr;

constexpr const char* whole_scenario = R"({"schema": "demarc.scenario/1", "device": "gtx1060-3gb",
  "streams": [{"name": "A", "priority": 1, "tpcs": "0-1"}],
  "kernels": [{"name": "K", "stream": "A", "arrival_us": 0, "blocks": 4, "threads": 512,
               "block_us": 100}]})";
constexpr const char* whole_tasks = R"({"schema": "demarc.tasks/1", "device": "gtx1060-3gb",
  "tasks": [{"name": "T", "period_us": 1000, "deadline_us": 900, "blocks": 4, "threads": 64,
             "block_us": {"1": 10, "2": 12}}]})";

// With the value at `pointer` replaced; null: taken out.
std::string changed(const std::string& text, const std::string& pointer, const std::string& value) {
  Json json = Json::parse(text);
  const Json::json_pointer at(pointer);
  if (value == "null")
    json[at.parent_pointer()].erase(at.back());
  else
    json[at] = Json::parse(value);
  return json.dump();
}
std::string scenario_error(const std::string& pointer, const std::string& value) {
  const auto parsed = parse_scenario(changed(whole_scenario, pointer, value), "x.json");
  return parsed ? "" : parsed.error().message;
}
std::string tasks_error(const std::string& pointer, const std::string& value) {
  const auto parsed = parse_tasks(changed(whole_tasks, pointer, value), "x.json");
  return parsed ? "" : parsed.error().message;
}

struct Limit {
  const char* pointer;
  const char* right;
  const char* wrong;
  const char* message;
};

// clang-format off
constexpr Limit scenario_limits[] = {
    {"/schema", R"("demarc.scenario/1")", R"("demarc.tasks/1")", "a task set goes to demarc schedule plan"},
    {"/schema", R"("demarc.scenario/1")", R"("x")", "schema 'x': expected demarc.scenario/1"},
    {"/device", R"("p100")", R"("p1")", "p1"},
    {"/task_slots", "1", "0", "task_slots: 0 is not within 1 .. 1048576"},
    {"/task_slots", "1048576", "1048577", "is not within"},
    {"/hardware_queues", "1", "0", "hardware_queues: 0 is not within 1 .. 1048576"},
    {"/hardware_queues", "1048576", "1048577", "is not within"},
    {"/streams/0/priority", "-100", "-101", "priority: -101 is not within -100 .. 100"},
    {"/streams/0/priority", "100", "101", "is not within"},
    {"/streams/0/tpcs", R"("0-8")", R"("0-9")", "tpcs"},
    {"/streams/0/gpcs", "null", R"("0")", "gives both tpcs and gpcs"},
    {"/streams/0/more", "null", "1", "unknown key 'more'"},
    {"/kernels", R"([{"name": "K", "stream": "A", "blocks": 1, "threads": 1, "block_us": 0}])", "[]", "kernels: none given"},
    {"/kernels/0/stream", R"("A")", R"("B")", "'B' is not one of the streams: A"},
    {"/kernels/0/arrival_us", "1e12", "1.1e12", "is not a time in microseconds"},
    {"/kernels/0/arrival_us", "0", "-1", "arrival_us: -1 is not a time in microseconds"},
    {"/kernels/0/block_us", "0", "-0.5", "block_us: -0.5 is not a time"},
    {"/kernels/0/block_us", "1", "null", "block_us"},
    {"/kernels/0/blocks", "1099511627776", "1099511627777", "is not within"},
    {"/kernels/0/blocks", "1", "0", "blocks: 0 is not within"},
    {"/kernels/0/threads", "1024", "1025", "threads: 1025 is not within 1 .. 1024"},
    {"/kernels/0/threads", "1", "0", "is not within"},
    {"/kernels/0/registers_per_thread", "255", "256", "is not within 0 .. 255"},
    {"/kernels/0/registers_per_thread", "0", "-1", "is not within"},
    {"/kernels/0/shared_bytes", "16777216", "16777217", "is not within 0 .. 16777216"},
    {"/kernels/0/shared_bytes", "0", "-1", "is not within"},
    {"/kernels/0/priority", "-100", "-101", "is not within"},
    {"/kernels/0/priority", "100", "101", "is not within"},
    {"/kernels/0/repeat", "1", "0", "repeat: 0 is not within 1 .. 1048576"},
    {"/kernels/0/repeat", "2", "1048577", "is not within"},
    {"/kernels/0/tpcs", R"("8")", R"("9")", "tpcs"},
    {"/more", "null", "1", "unknown key 'more'"},
};
constexpr Limit tasks_limits[] = {
    {"/schema", R"("demarc.tasks/1")", R"("demarc.scenario/1")", "a scenario goes to demarc schedule"},
    {"/schema", R"("demarc.tasks/1")", R"("x")", "schema 'x': expected demarc.tasks/1"},
    {"/tasks", R"([{"name": "T", "period_us": 1, "blocks": 1, "threads": 1, "block_us": 1}])", "[]", "tasks: none given"},
    {"/tasks/0/period_us", "1e9", "1.1e9", "is not a time in microseconds"},
    {"/tasks/0/period_us", "0.001", "0", "period_us: 0 is not a time in microseconds"},
    {"/tasks/0/deadline_us", "1e9", "1.1e9", "is not a time in microseconds"},
    {"/tasks/0/deadline_us", "0.5", "-1", "is not a time"},
    {"/tasks/0/blocks", "16777216", "16777217", "is not within 1 .. 16777216"},
    {"/tasks/0/blocks", "1", "0", "is not within"},
    {"/tasks/0/threads", "1024", "1025", "is not within 1 .. 1024"},
    {"/tasks/0/threads", "1", "0", "is not within"},
    {"/tasks/0/registers_per_thread", "255", "256", "is not within 0 .. 255"},
    {"/tasks/0/shared_bytes", "16777216", "16777217", "is not within 0 .. 16777216"},
    {"/tasks/0/shared_bytes", "0", "-1", "is not within"},
    {"/tasks/0/block_us", "7", R"("7")", "expected a time, or times by number of TPCs"},
    {"/tasks/0/block_us", R"({"1": 7})", "{}", "expected a time, or times by number of TPCs"},
    {"/tasks/0/block_us", R"({"1": 7})", R"({"0": 7})", "expected a number of TPCs and a time"},
    {"/tasks/0/block_us", R"({"512": 7})", R"({"513": 7})", "expected a number of TPCs and a time"},
    {"/tasks/0/block_us", R"({"1": 7})", R"({"1": "7"})", "expected a number of TPCs and a time"},
    {"/tasks/0/block_us", R"({"1": 7})", R"({"x": 7})", "block_us.x"},
    {"/tasks/0/block_us", R"({"1": 7})", R"({"1": 0})", "0 is not a time"},
    {"/tasks/0/more", "null", "1", "unknown key 'more'"},
};
// clang-format on

TEST(ScenarioLimits, are_where_they_are_said_to_be) {
  for (const Limit& limit : scenario_limits) {
    EXPECT_EQ(scenario_error(limit.pointer, limit.right), "") << limit.pointer;
    EXPECT_THAT(scenario_error(limit.pointer, limit.wrong), HasSubstr(limit.message))
        << limit.pointer << " = " << limit.wrong;
  }
}

TEST(TaskLimits, are_where_they_are_said_to_be) {
  for (const Limit& limit : tasks_limits) {
    EXPECT_EQ(tasks_error(limit.pointer, limit.right), "") << limit.pointer;
    EXPECT_THAT(tasks_error(limit.pointer, limit.wrong), HasSubstr(limit.message))
        << limit.pointer << " = " << limit.wrong;
  }
}

TEST(Scenario, arrives_whole_with_its_defaults) {
  const auto plain = parse_scenario(whole_scenario, "x.json").value();
  EXPECT_EQ(plain.spec.task_slots, 32U);
  EXPECT_EQ(plain.spec.hardware_queues, 32U);
  ASSERT_EQ(plain.kernels.size(), 1U);
  const PipelineKernel& kernel = plain.kernels[KernelIndex(0)];
  EXPECT_EQ(kernel.priority, 1) << "the stream's";
  EXPECT_EQ(kernel.tpcs.count(), 2U);
  EXPECT_EQ(kernel.registers_per_thread, 0U);
  EXPECT_EQ(kernel.shared_bytes, 0U);
  EXPECT_EQ(kernel.block_time, 100'000_ns);
  const auto own = parse_scenario(
      changed(changed(whole_scenario, "/kernels/0/gpcs", R"("1")"), "/kernels/0/priority", "-3"),
      "x");
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->kernels[KernelIndex(0)].priority, -3);
  EXPECT_EQ(own->kernels[KernelIndex(0)].tpcs.count(),
            own->spec.topology.tpcs_of_gpc(gpu::GpcIndex(1)).size());
  const auto repeated =
      parse_scenario(changed(whole_scenario, "/kernels/0/repeat", "3"), "x").value();
  EXPECT_EQ(repeated.kernels.size(), 3U);
}

TEST(Tasks, arrive_whole_with_their_defaults) {
  const auto set = parse_tasks(changed(whole_tasks, "/tasks/0/deadline_us", "null"), "x").value();
  EXPECT_EQ(set.tasks[0].deadline, 1'000'000_ns) << "the period";
  EXPECT_EQ(set.tasks[0].block_times,
            (std::map<std::uint32_t, Nanoseconds>{{1, 10'000_ns}, {2, 12'000_ns}}));
  const auto one = parse_tasks(changed(whole_tasks, "/tasks/0/block_us", "7"), "x").value();
  EXPECT_EQ(one.tasks[0].block_times, (std::map<std::uint32_t, Nanoseconds>{{1, 7'000_ns}}));
}

}  // namespace
}  // namespace demarc::sim
