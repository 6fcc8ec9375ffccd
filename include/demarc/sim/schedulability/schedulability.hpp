// Periodic real-time tasks on TPC partitions: how many TPCs each needs, which tasks may share, and
// whether the pipeline simulation agrees.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/sim/pipeline/pipeline.hpp"

namespace demarc::sim {

// A job is one kernel launch, released every period; it must end within the deadline.
struct RealTimeTask {
  std::string name;
  Nanoseconds period;
  Nanoseconds deadline;
  std::uint64_t blocks = 1;
  std::uint32_t threads = 32;
  std::uint32_t registers_per_thread = 0;
  std::uint32_t shared_bytes = 0;
  // How long a block runs, by the number of TPCs of its partition. The entry of the largest number
  // not above it counts; below the first entry, the first.
  std::map<std::uint32_t, Nanoseconds> block_times;
};

struct TaskSet {
  std::string device_name;
  PipelineSpec spec;
  std::vector<RealTimeTask> tasks;
};

// {"schema": "demarc.tasks/1", "device": "h100-sxm", "tasks": [{"name": "camera", "period_us":
//  33000, "deadline_us": 20000, "blocks": 800, "threads": 256, "block_us": 100}]}; "block_us" may
//  be
// an object {"1": 100, "4": 120} by number of TPCs; "deadline_us" defaults to the period.
[[nodiscard]] Result<TaskSet> parse_tasks(std::string_view text, std::string_view source);

// The time of one job alone on `tpcs` TPCs, in full waves of blocks.
[[nodiscard]] Nanoseconds job_time(const TaskSet& set, std::size_t task, std::uint32_t tpcs);

// Tasks of one partition run one job after another, in the order of release.
struct TaskPartition {
  std::vector<TpcIndex> tpcs;
  std::vector<std::size_t> tasks;
  Nanoseconds bound;  // no job takes longer: the sum of the job times
};

// Tasks that share a partition, and the fewest TPCs on which it holds their deadlines.
struct TaskGroup {
  std::vector<std::size_t> tasks;
  std::uint32_t tpcs = 0;
};

struct LeastTpcs {
  std::uint64_t tpcs = 0;  // may be more than the device has
  bool exact = false;      // every way to share was tried; else: no merging of two groups saves
                           // more
  std::vector<TaskGroup> groups;
};

struct SchedulePlan {
  std::vector<TaskPartition> partitions;
  std::optional<LeastTpcs> least;         // as least_tpcs()
  std::vector<std::size_t> impossible;    // tasks that miss their deadline on the whole GPU, alone
  std::vector<std::size_t> left_out;      // tasks for which no TPCs are left
  std::vector<std::size_t> without_slot;  // tasks for whose partition no task slot is left
  std::vector<Nanoseconds> worst;         // simulated worst response of each task
  [[nodiscard]] bool feasible() const {
    return impossible.empty() && left_out.empty() && without_slot.empty();
  }
};

inline constexpr std::size_t max_tasks = 4096;

// Each partition has one stream, which has a hardware queue of its own and always a slot for its
// kernel.
[[nodiscard]] std::size_t max_partitions(const TaskSet& set);

// The fewest TPCs that hold every deadline by the rule of shared partitions below; exact up to
// twelve tasks. Nothing if a task misses its deadline even alone on the whole GPU, or if there are
// too few task slots.
[[nodiscard]] std::optional<LeastTpcs> least_tpcs(const TaskSet& set);

// Each task first gets a partition of its own. While these do not fit, those whose merging saves
// most TPCs share one. A shared partition holds its deadlines if the sum of its job times is at
// most the shortest period and the shortest deadline: then at most one job of each other task is
// ahead. There are no more partitions than the pipeline has task slots and hardware queues, because
// a kernel that waits for a slot would break its bound. Partitions are merged until there are few
// enough. Spare TPCs go to the partition with the least slack. The plan is simulated; a simulated
// response above its bound is an error (check_failed).
[[nodiscard]] Result<SchedulePlan> plan_schedule(const TaskSet& set);

[[nodiscard]] std::string plan_text(const TaskSet& set, const SchedulePlan& plan);
[[nodiscard]] std::string plan_json(const TaskSet& set, const SchedulePlan& plan);

}  // namespace demarc::sim
