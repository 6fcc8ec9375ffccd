// Reads sets of periodic tasks from JSON, and prints the plan that is made for them.
#include <cmath>

#include "demarc/base/json.hpp"
#include "demarc/base/numbers.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "demarc/sim/schedulability/schedulability.hpp"
#include "pipeline/index_ranges.hpp"

namespace demarc::sim {
namespace {

Result<Nanoseconds> task_time(double us, const std::string& where) {
  if (!(us > 0) || us > 1e9)
    return invalid_input("{}: {} is not a time in microseconds", where, us);
  return Nanoseconds(std::llround(us * 1000));
}

Result<RealTimeTask> parse_task(const Json& json, const std::string& where) {
  DEMARC_TRY(JsonObject object, JsonObject::of(json, where));
  RealTimeTask task;
  DEMARC_TRY(task.name, object.string("name"));
  DEMARC_TRY(const double period, object.number("period_us"));
  DEMARC_TRY(task.period, task_time(period, where + ".period_us"));
  DEMARC_TRY(const double deadline, object.number_or("deadline_us", period));
  DEMARC_TRY(task.deadline, task_time(deadline, where + ".deadline_us"));
  DEMARC_TRY(const auto blocks, object.integer("blocks", 1, 1 << 24));
  DEMARC_TRY(const auto threads, object.integer("threads", 1, 1024));
  DEMARC_TRY(const auto registers, object.integer_or("registers_per_thread", 0, 255, 0));
  DEMARC_TRY(const auto shared, object.integer_or("shared_bytes", 0, 1 << 24, 0));
  task.blocks = static_cast<std::uint64_t>(blocks);
  task.threads = static_cast<std::uint32_t>(threads);
  task.registers_per_thread = static_cast<std::uint32_t>(registers);
  task.shared_bytes = static_cast<std::uint32_t>(shared);
  DEMARC_TRY(const Json* durations, object.any("block_us"));
  if (durations->is_number()) {
    DEMARC_TRY(task.block_times[1], task_time(durations->get<double>(), where + ".block_us"));
  } else if (durations->is_object() && !durations->empty()) {
    for (const auto& [tpcs, us] : durations->items()) {
      const std::string key = fmt::format("{}.block_us.{}", where, tpcs);
      DEMARC_TRY(const std::uint64_t count, parse_u64(tpcs, key));
      if (!us.is_number() || count == 0 || count > max_tpcs) {
        return invalid_input("{}: expected a number of TPCs and a time", key);
      }
      DEMARC_TRY(task.block_times[static_cast<std::uint32_t>(count)],
                 task_time(us.get<double>(), key));
    }
  } else {
    return invalid_input("{}.block_us: expected a time, or times by number of TPCs", where);
  }
  DEMARC_CHECK(object.finish());
  return task;
}

}  // namespace

Result<TaskSet> parse_tasks(std::string_view text, std::string_view source) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject root, JsonObject::of(json, std::string(source)));
  DEMARC_TRY(const std::string schema, root.string("schema"));
  if (schema != "demarc.tasks/1") {
    return invalid_input(
        "{}: schema '{}': expected demarc.tasks/1{}", source, schema,
        schema == "demarc.scenario/1" ? "; a scenario goes to demarc schedule" : "");
  }
  TaskSet set;
  DEMARC_TRY(set.device_name, root.string("device"));
  DEMARC_TRY(const gpu::Device device, gpu::find_device(set.device_name));
  set.spec.topology = device.topology;
  set.spec.sm = device.sm;
  DEMARC_TRY(const Json* tasks, root.array("tasks"));
  DEMARC_CHECK(root.finish());
  if (tasks->empty()) return invalid_input("{}: tasks: none given", source);
  for (const Json& task : *tasks) {
    DEMARC_TRY(RealTimeTask parsed,
               parse_task(task, fmt::format("{}: tasks[{}]", source, set.tasks.size())));
    set.tasks.push_back(std::move(parsed));
  }
  return set;
}

std::string plan_text(const TaskSet& set, const SchedulePlan& plan) {
  std::string out;
  append(out, "{}: {} TPCs\n", set.device_name, set.spec.topology.tpc_count());
  for (const TaskPartition& partition : plan.partitions) {
    append(out, "partition of {} TPCs {}: bound {:.1f} us\n", partition.tpcs.size(),
           index_ranges(partition.tpcs), microseconds(partition.bound));
    for (const std::size_t t : partition.tasks) {
      append(out, "  {:<16} period {:.1f} us, deadline {:.1f} us, simulated worst {:.1f} us\n",
             set.tasks[t].name, microseconds(set.tasks[t].period),
             microseconds(set.tasks[t].deadline), microseconds(plan.worst[t]));
    }
  }
  if (plan.least) {
    std::vector<std::string> groups;
    for (const TaskGroup& group : plan.least->groups) {
      std::vector<std::string> names;
      for (const std::size_t t : group.tasks) names.push_back(set.tasks[t].name);
      groups.push_back(fmt::format("{} on {}", joined(names, " + "), group.tpcs));
    }
    append(out, "{} of {} TPCs hold every deadline: {}; {}\n", plan.least->tpcs,
           set.spec.topology.tpc_count(), joined(groups, ", "),
           plan.least->exact ? "no fewer do" : "fewer may do: not every way to share was tried");
  }
  for (const std::size_t t : plan.impossible) {
    append(out,
           "cannot hold: {} takes {:.1f} us on all TPCs, deadline {:.1f} us, period {:.1f} us\n",
           set.tasks[t].name, microseconds(job_time(set, t, set.spec.topology.tpc_count())),
           microseconds(set.tasks[t].deadline), microseconds(set.tasks[t].period));
  }
  for (const std::size_t t : plan.left_out) {
    append(out, "no TPCs left for: {}\n", set.tasks[t].name);
  }
  for (const std::size_t t : plan.without_slot) {
    append(out, "no task slot left for: {} ({} slots, {} hardware queues)\n", set.tasks[t].name,
           set.spec.task_slots, set.spec.hardware_queues);
  }
  return out;
}

std::string plan_json(const TaskSet& set, const SchedulePlan& plan) {
  Json root{{"schema", "demarc.schedule.plan/1"}, {"version", version()},
            {"device", set.device_name},          {"feasible", plan.feasible()},
            {"partitions", Json::array()},        {"impossible", Json::array()},
            {"left_out", Json::array()},          {"without_slot", Json::array()}};
  for (const TaskPartition& partition : plan.partitions) {
    Json tasks = Json::array();
    for (const std::size_t t : partition.tasks) {
      tasks.push_back({{"name", set.tasks[t].name},
                       {"deadline_us", microseconds(set.tasks[t].deadline)},
                       {"simulated_worst_us", microseconds(plan.worst[t])}});
    }
    root["partitions"].push_back({{"tpcs", index_array(partition.tpcs)},
                                  {"bound_us", microseconds(partition.bound)},
                                  {"tasks", std::move(tasks)}});
  }
  root["least"] = nullptr;
  if (plan.least) {
    Json groups = Json::array();
    for (const TaskGroup& group : plan.least->groups) {
      Json names = Json::array();
      for (const std::size_t t : group.tasks) names.push_back(set.tasks[t].name);
      groups.push_back({{"tasks", std::move(names)}, {"tpcs", group.tpcs}});
    }
    root["least"] = {
        {"tpcs", plan.least->tpcs}, {"exact", plan.least->exact}, {"groups", std::move(groups)}};
  }
  for (const std::size_t t : plan.impossible) root["impossible"].push_back(set.tasks[t].name);
  for (const std::size_t t : plan.left_out) root["left_out"].push_back(set.tasks[t].name);
  for (const std::size_t t : plan.without_slot) root["without_slot"].push_back(set.tasks[t].name);
  return json_text(root, 2) + "\n";
}

}  // namespace demarc::sim
