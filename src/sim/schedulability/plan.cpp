// Finds a TPC partition in which periodic tasks hold their deadlines.
#include <algorithm>
#include <numeric>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/schedulability/schedulability.hpp"
#include "pipeline/sm_room.hpp"
#include "schedulability/shares.hpp"

namespace demarc::sim {
namespace {

Nanoseconds block_time(const RealTimeTask& task, std::uint32_t tpcs) {
  auto entry = task.block_times.upper_bound(tpcs);
  if (entry != task.block_times.begin()) --entry;
  return entry->second;
}

// Spare TPCs, one at a time, to the share with the least slack among those it helps.
void spend_spare(std::vector<Share>& shares, std::uint64_t spare) {
  for (; spare > 0; --spare) {
    Share* tightest = nullptr;
    double highest = 0;
    for (Share& share : shares) {
      const Nanoseconds now = share.bound_on(share.tpcs);
      if (share.bound_on(share.tpcs + 1) > now) continue;
      const double load = static_cast<double>(now.raw()) / static_cast<double>(share.limit.raw());
      if (load <= highest) continue;
      tightest = &share;
      highest = load;
    }
    if (tightest == nullptr) return;
    ++tightest->tpcs;
  }
}

// What the simulation would have to run, in blocks times SMs that take them: refused when that is
// more than some seconds' worth.
Result<void> check_work(const TaskSet& set, const SchedulePlan& plan, Nanoseconds horizon) {
  constexpr double max_work = 2e7;
  double work = 0;
  for (const TaskPartition& partition : plan.partitions) {
    for (const std::size_t t : partition.tasks) {
      const RealTimeTask& task = set.tasks[t];
      const std::uint64_t jobs = horizon / task.period + 1;
      work += static_cast<double>(jobs) * (1 + static_cast<double>(task.blocks));
      if (work <= max_work) continue;
      return invalid_input(
          "task '{}': to try the plan out, {} jobs of {} blocks would be simulated until {:.0f} "
          "us, which are too many; bring the periods closer together or make the kernels smaller",
          task.name, jobs, task.blocks, microseconds(horizon));
    }
  }
  return {};
}

// Releases all tasks together at 0 and runs about a thousand jobs, or the hyperperiod.
Result<void> check_by_simulation(const TaskSet& set, SchedulePlan& plan) {
  constexpr std::uint64_t max_jobs = 1000;
  double jobs_per_ns = 0;
  Nanoseconds hyperperiod = 1_ns;
  Nanoseconds longest_period = 1_ns;
  for (const RealTimeTask& task : set.tasks) {
    jobs_per_ns += 1.0 / static_cast<double>(task.period.raw());
    longest_period = std::max(longest_period, task.period);
    constexpr Nanoseconds long_enough(std::uint64_t{1} << 40);
    if (hyperperiod < long_enough) {
      hyperperiod = Nanoseconds(std::lcm(hyperperiod.raw(), task.period.raw()));
    }
  }
  const Nanoseconds enough(static_cast<std::uint64_t>(double{max_jobs} / jobs_per_ns));
  const Nanoseconds horizon = std::max(std::min(hyperperiod, enough), 2 * longest_period);
  DEMARC_CHECK(check_work(set, plan, horizon));

  PipelineKernels kernels;
  PerIndex<KernelIndex, std::size_t> task_of;
  for (std::uint32_t p = 0; p < plan.partitions.size(); ++p) {
    const TaskPartition& partition = plan.partitions[p];
    std::vector<std::pair<Nanoseconds, std::size_t>> releases;
    for (const std::size_t t : partition.tasks) {
      for (Nanoseconds at; at < horizon; at += set.tasks[t].period) {
        releases.emplace_back(at, t);
      }
    }
    std::sort(releases.begin(), releases.end());
    TpcMask mask;
    for (const TpcIndex tpc : partition.tpcs) mask.set(tpc.raw());
    for (const auto& [at, t] : releases) {
      const RealTimeTask& task = set.tasks[t];
      PipelineKernel kernel;
      kernel.name = task.name;
      kernel.stream = p;
      kernel.arrival = at;
      kernel.blocks = task.blocks;
      kernel.threads = task.threads;
      kernel.registers_per_thread = task.registers_per_thread;
      kernel.shared_bytes = task.shared_bytes;
      kernel.block_time = block_time(task, static_cast<std::uint32_t>(partition.tpcs.size()));
      kernel.tpcs = mask;
      kernels.push_back(std::move(kernel));
      task_of.push_back(t);
    }
  }
  DEMARC_TRY(const PipelineRun run, run_pipeline(set.spec, kernels, false));
  plan.worst.assign(set.tasks.size(), 0_ns);
  for (const KernelIndex k : kernels.keys()) {
    const Nanoseconds response = run.kernels[k].ended - kernels[k].arrival;
    const Nanoseconds bound = plan.partitions[kernels[k].stream].bound;
    Nanoseconds& worst = plan.worst[task_of[k]];
    worst = std::max(worst, response);
    const RealTimeTask& task = set.tasks[task_of[k]];
    if (response > bound || response > task.deadline) {
      return check_failed(
          "task '{}': the simulation takes {} ns for a job, the plan promised {} "
          "ns and the deadline is {} ns",
          task.name, response, bound, task.deadline);
    }
  }
  return {};
}

}  // namespace

Nanoseconds job_time(const TaskSet& set, std::size_t task, std::uint32_t tpcs) {
  const RealTimeTask& t = set.tasks[task];
  PipelineKernel kernel;
  kernel.threads = t.threads;
  kernel.registers_per_thread = t.registers_per_thread;
  kernel.shared_bytes = t.shared_bytes;
  const BlockNeed need = block_need(kernel, set.spec.sm);
  std::uint64_t per_sm = std::min(set.spec.sm.blocks, set.spec.sm.threads / need.threads);
  if (need.registers > 0)
    per_sm = std::min<std::uint64_t>(per_sm, set.spec.sm.registers / need.registers);
  if (need.shared > 0)
    per_sm = std::min<std::uint64_t>(per_sm, set.spec.sm.shared_bytes / need.shared);
  // TPCs with fewer SMs count as the smallest, so the bound holds whichever are chosen.
  std::uint64_t sms = ~std::uint64_t{0};
  for (const gpu::Tpc& tpc : set.spec.topology.tpcs) {
    sms = std::min<std::uint64_t>(sms, tpc.sms.size());
  }
  const std::uint64_t wave = std::max<std::uint64_t>(per_sm * sms * tpcs, 1);
  return ceil_div(t.blocks, wave) * block_time(t, tpcs);
}

std::size_t max_partitions(const TaskSet& set) {
  return std::min(set.spec.task_slots, set.spec.hardware_queues);
}

Result<SchedulePlan> plan_schedule(const TaskSet& set) {
  if (set.tasks.size() > max_tasks) {
    return invalid_input("{} tasks; a plan is made for at most {}", set.tasks.size(), max_tasks);
  }
  SchedulePlan plan;
  plan.least = least_tpcs(set);
  std::vector<Share> alone;
  for (std::size_t t = 0; t < set.tasks.size(); ++t) {
    if (auto share = share_of(set, t)) {
      alone.push_back(std::move(*share));
    } else {
      plan.impossible.push_back(t);
    }
  }
  const std::uint64_t all = set.spec.topology.tpc_count();
  const std::size_t most = max_partitions(set);
  Shares groups(std::move(alone));
  while (groups.tpcs() > all && groups.merge_best(1)) {
  }
  // What still does not fit is left out, the widest first.
  while (groups.tpcs() > all) groups.remove_widest(plan.left_out);
  const auto spare = [&] { return static_cast<std::int64_t>(all - groups.tpcs()); };
  while (groups.count() > most && groups.merge_best(-spare())) {
  }
  while (groups.count() > most) groups.remove_widest(plan.without_slot);
  std::vector<Share> shares = groups.take();
  if (plan.feasible()) spend_spare(shares, all - groups.tpcs());
  // GPC by GPC, so that partitions share as few GPCs as possible.
  std::vector<TpcIndex> order;
  for (const gpu::GpcIndex gpc : set.spec.topology.gpcs()) {
    for (const TpcIndex tpc : set.spec.topology.tpcs_of_gpc(gpc)) order.push_back(tpc);
  }
  auto next = order.begin();
  for (const Share& share : shares) {
    TaskPartition partition;
    partition.tpcs.assign(next, next + share.tpcs);
    std::sort(partition.tpcs.begin(), partition.tpcs.end());
    next += share.tpcs;
    partition.tasks = share.tasks;
    partition.bound = share.bound_on(share.tpcs);
    plan.partitions.push_back(std::move(partition));
  }
  if (!plan.partitions.empty()) DEMARC_CHECK(check_by_simulation(set, plan));
  return plan;
}

}  // namespace demarc::sim
