#include <algorithm>
#include <numeric>

#include "demarc/sim/schedulability.hpp"
#include "pipeline/sm_room.hpp"

namespace demarc::sim {
namespace {

// A partition before its TPCs are chosen.
struct Share {
  std::vector<std::size_t> tasks;
  std::uint32_t tpcs = 0;
};

std::uint64_t shared_bound(const TaskSet& set, const Share& share, std::uint32_t tpcs) {
  std::uint64_t sum = 0;
  for (const std::size_t t : share.tasks) sum += job_time_ns(set, t, tpcs);
  return sum;
}

std::uint64_t shared_limit(const TaskSet& set, const Share& share) {
  std::uint64_t limit = ~std::uint64_t{0};
  for (const std::size_t t : share.tasks) {
    limit = std::min({limit, set.tasks[t].period_ns, set.tasks[t].deadline_ns});
  }
  return limit;
}

// Sets the fewest TPCs on which the share holds its deadlines; false when there is none.
bool size_share(const TaskSet& set, Share& share) {
  const std::uint64_t limit = shared_limit(set, share);
  for (std::uint32_t tpcs = 1; tpcs <= set.spec.topology.tpc_count(); ++tpcs) {
    if (shared_bound(set, share, tpcs) > limit) continue;
    share.tpcs = tpcs;
    return true;
  }
  return false;
}

std::uint32_t total_tpcs(const std::vector<Share>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0U,
                         [](std::uint32_t sum, const Share& s) { return sum + s.tpcs; });
}

// Merges the two shares that saves most TPCs; false when no merging saves any.
bool merge_best(const TaskSet& set, std::vector<Share>& shares) {
  std::uint32_t most_saved = 0;
  std::size_t first = 0;
  std::size_t second = 0;
  Share best;
  for (std::size_t a = 0; a < shares.size(); ++a) {
    for (std::size_t b = a + 1; b < shares.size(); ++b) {
      Share merged = shares[a];
      merged.tasks.insert(merged.tasks.end(), shares[b].tasks.begin(), shares[b].tasks.end());
      if (!size_share(set, merged)) continue;
      const std::uint32_t apart = shares[a].tpcs + shares[b].tpcs;
      if (merged.tpcs >= apart || apart - merged.tpcs <= most_saved) continue;
      most_saved = apart - merged.tpcs;
      first = a;
      second = b;
      best = merged;
    }
  }
  if (most_saved == 0) return false;
  shares[first] = std::move(best);
  shares.erase(shares.begin() + static_cast<std::ptrdiff_t>(second));
  return true;
}

// Spare TPCs, one at a time, to the share with the least slack among those it helps.
void spend_spare(const TaskSet& set, std::vector<Share>& shares, std::uint32_t spare) {
  for (; spare > 0; --spare) {
    Share* tightest = nullptr;
    double highest = 0;
    for (Share& share : shares) {
      const std::uint64_t now = shared_bound(set, share, share.tpcs);
      if (shared_bound(set, share, share.tpcs + 1) > now) continue;
      const double load = static_cast<double>(now) / static_cast<double>(shared_limit(set, share));
      if (load <= highest) continue;
      tightest = &share;
      highest = load;
    }
    if (tightest == nullptr) return;
    ++tightest->tpcs;
  }
}

// Releases all tasks together at 0 and runs about a thousand jobs, or the hyperperiod.
Result<void> check_by_simulation(const TaskSet& set, SchedulePlan& plan) {
  constexpr std::uint64_t most_jobs = 1000;
  double jobs_per_ns = 0;
  std::uint64_t hyperperiod = 1;
  std::uint64_t longest_period = 1;
  for (const RealTimeTask& task : set.tasks) {
    jobs_per_ns += 1.0 / static_cast<double>(task.period_ns);
    longest_period = std::max(longest_period, task.period_ns);
    constexpr std::uint64_t long_enough = std::uint64_t{1} << 40;
    if (hyperperiod < long_enough) hyperperiod = std::lcm(hyperperiod, task.period_ns);
  }
  const auto enough = static_cast<std::uint64_t>(double{most_jobs} / jobs_per_ns);
  const std::uint64_t horizon = std::max(std::min(hyperperiod, enough), 2 * longest_period);

  std::vector<PipelineKernel> kernels;
  std::vector<std::size_t> task_of;
  for (std::uint32_t p = 0; p < plan.partitions.size(); ++p) {
    const TaskPartition& partition = plan.partitions[p];
    std::vector<std::pair<std::uint64_t, std::size_t>> releases;
    for (const std::size_t t : partition.tasks) {
      for (std::uint64_t at = 0; at < horizon; at += set.tasks[t].period_ns) {
        releases.emplace_back(at, t);
      }
    }
    std::sort(releases.begin(), releases.end());
    TpcMask mask;
    for (const std::uint32_t tpc : partition.tpcs) mask.set(tpc);
    for (const auto& [at, t] : releases) {
      const RealTimeTask& task = set.tasks[t];
      PipelineKernel kernel;
      kernel.name = task.name;
      kernel.stream = p;
      kernel.arrival_ns = at;
      kernel.blocks = task.blocks;
      kernel.threads = task.threads;
      kernel.registers_per_thread = task.registers_per_thread;
      kernel.shared_bytes = task.shared_bytes;
      const auto tpcs = static_cast<std::uint32_t>(partition.tpcs.size());
      auto entry = task.block_ns.upper_bound(tpcs);
      if (entry != task.block_ns.begin()) --entry;
      kernel.block_ns = entry->second;
      kernel.tpcs = mask;
      kernels.push_back(std::move(kernel));
      task_of.push_back(t);
    }
  }
  DEMARC_TRY(const PipelineRun run, run_pipeline(set.spec, kernels, false));
  plan.worst_ns.assign(set.tasks.size(), 0);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::uint64_t response = run.kernels[k].end_ns - kernels[k].arrival_ns;
    std::uint64_t& worst = plan.worst_ns[task_of[k]];
    worst = std::max(worst, response);
    const RealTimeTask& task = set.tasks[task_of[k]];
    if (response > plan.partitions[kernels[k].stream].bound_ns || response > task.deadline_ns) {
      return check_failed(
          "task '{}': the simulation takes {} ns for a job, the plan promised {} "
          "ns and the deadline is {} ns",
          task.name, response, plan.partitions[kernels[k].stream].bound_ns, task.deadline_ns);
    }
  }
  return {};
}

}  // namespace

std::uint64_t job_time_ns(const TaskSet& set, std::size_t task, std::uint32_t tpcs) {
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
  auto entry = t.block_ns.upper_bound(tpcs);
  if (entry != t.block_ns.begin()) --entry;
  return (t.blocks + wave - 1) / wave * entry->second;
}

Result<SchedulePlan> plan_schedule(const TaskSet& set) {
  SchedulePlan plan;
  std::vector<Share> shares;
  for (std::size_t t = 0; t < set.tasks.size(); ++t) {
    Share share{{t}, 0};
    if (size_share(set, share)) {
      shares.push_back(std::move(share));
    } else {
      plan.impossible.push_back(t);
    }
  }
  const std::uint32_t all = set.spec.topology.tpc_count();
  while (total_tpcs(shares) > all && merge_best(set, shares)) {
  }
  // What still does not fit is left out, the widest first.
  while (total_tpcs(shares) > all) {
    const auto widest =
        std::max_element(shares.begin(), shares.end(),
                         [](const Share& a, const Share& b) { return a.tpcs < b.tpcs; });
    plan.left_out.insert(plan.left_out.end(), widest->tasks.begin(), widest->tasks.end());
    shares.erase(widest);
  }
  if (plan.feasible()) spend_spare(set, shares, all - total_tpcs(shares));
  // GPC by GPC, so that partitions share as few GPCs as possible.
  std::vector<std::uint32_t> order;
  for (std::uint32_t g = 0; g < set.spec.topology.gpc_count(); ++g) {
    for (const std::uint32_t tpc : set.spec.topology.tpcs_of_gpc(g)) order.push_back(tpc);
  }
  auto next = order.begin();
  for (const Share& share : shares) {
    TaskPartition partition;
    partition.tpcs.assign(next, next + share.tpcs);
    std::sort(partition.tpcs.begin(), partition.tpcs.end());
    next += share.tpcs;
    partition.tasks = share.tasks;
    partition.bound_ns = shared_bound(set, share, share.tpcs);
    plan.partitions.push_back(std::move(partition));
  }
  if (!plan.partitions.empty()) DEMARC_CHECK(check_by_simulation(set, plan));
  return plan;
}

}  // namespace demarc::sim
