// Forecasts what each workload of a plan loses with half the L2 and takes of the bandwidth.
#include "demarc/study/forecast.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "demarc/locality/analyse.hpp"
#include "demarc/locality/predict.hpp"
#include "demarc/ptx/ir.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::study {
namespace {

std::string lacks_for_forecast(const gpu::Device& device) {
  if (device.l2.size_bytes == 0) {
    return fmt::format("the description of {} lacks the size of the L2 (l2.size_bytes)",
                       device.name);
  }
  if (device.dram.bandwidth_bytes_per_s <= 0) {
    return fmt::format(
        "the description of {} lacks the bandwidth of the DRAM (dram.bandwidth_bytes_per_s)",
        device.name);
  }
  return {};
}

// A kernel of the workload, by the launch that stands for all of its launches.
struct Standing {
  std::size_t launch = 0;  // index into Launch::kernels
  double times = 1;        // threads of all its launches / of this one
};

std::vector<Standing> standing_launches(const gpu::Launch& launch) {
  const auto threads = [&launch](std::size_t k) {
    return launch.kernels[k].grid.count() * launch.kernels[k].block.count();
  };
  std::vector<Standing> out;
  std::set<std::string> seen;
  for (const gpu::KernelLaunch& first : launch.kernels) {
    if (!seen.insert(first.kernel).second) continue;
    std::vector<std::size_t> largest;
    std::uint64_t all = 0;
    for (std::size_t k = 0; k < launch.kernels.size(); ++k) {
      if (launch.kernels[k].kernel != first.kernel) continue;
      all += threads(k);
      if (!largest.empty() && threads(k) > threads(largest.front())) largest.clear();
      if (largest.empty() || threads(k) == threads(largest.front())) largest.push_back(k);
    }
    const std::size_t middle = largest[largest.size() / 2];
    out.push_back({middle, static_cast<double>(all) / static_cast<double>(threads(middle))});
  }
  return out;
}

// A workload's fraction of what all workloads of a plan share.
struct Allowance {
  std::uint64_t requests;  // in one time through a workload
  locality::Effort effort;
};

Allowance allowance_for(std::size_t workloads) {
  // Each is gone through four times: twice with the whole L2, twice with half of it.
  Allowance out{Forecast::max_requests / (4 * workloads), {}};
  out.effort.row_operations = 6'000'000 / workloads;
  out.effort.beginning = true;
  out.effort.trace_words = 16'000'000 / workloads;
  out.effort.emulated_buffer_bytes = (std::uint64_t{256} << 20U) / workloads;
  return out;
}

// Errors: what stands against a forecast of this workload.
Result<void> fill_in(const WorkloadCode& code, const gpu::Device& device, const ptx::Module& module,
                     const Allowance& allowance, WorkloadForecast& out) {
  std::vector<locality::Collected> collected;
  std::vector<locality::RepeatedKernel> kernels;
  const std::vector<Standing> standing = standing_launches(code.launch);
  collected.reserve(standing.size());
  locality::Effort effort = allowance.effort;
  effort.row_operations /= standing.size();
  effort.trace_words /= standing.size();
  bool cut = false;
  for (const Standing& one : standing) {
    DEMARC_TRY(auto runs, locality::collect_runs(module, code.launch, one.launch,
                                                 locality::Force::automatic, 0, {}, effort));
    if (runs.left_out > 0) {
      return missing_capability("{} of its instructions cannot be followed", runs.left_out);
    }
    cut = cut || runs.cut;
    collected.push_back(std::move(runs));
    kernels.push_back({&collected.back().runs,
                       locality::shared_bytes_of(module, code.launch.kernels[one.launch]),
                       one.times, code.launch.kernels[one.launch].grid.count()});
  }
  locality::PredictOptions options;
  options.max_requests = allowance.requests;
  options.beginning = cut;
  options.buffer_bytes = 0;
  for (const gpu::Buffer& buffer : code.launch.buffers) options.buffer_bytes += buffer.bytes;
  const locality::Sensitivity s = locality::predict_repeated(kernels, device, options);
  out.launches = code.launch.kernels.size();
  out.kernels = standing.size();
  out.complete = !cut && s.whole.complete && s.half.complete;
  out.half_l2_slowdown = s.half_l2_slowdown;
  out.half_memory_slowdown = s.half_memory_slowdown;
  out.l2_hit_rate = s.whole.l2_hit_rate;
  out.half_l2_hit_rate = s.half.l2_hit_rate;
  out.dram_demand_share = s.dram_demand_share;
  out.l2_demand_share = s.l2_demand_share;
  return {};
}

Result<WorkloadForecast> forecast_of(const Workload& workload, const gpu::Device& device,
                                     const Executor& executor, const Allowance& allowance) {
  WorkloadForecast out;
  out.name = workload.name;
  out.spec = workload.spec;
  const auto code = executor.code_of(workload);
  if (!code) {
    if (code.error().kind != ErrorKind::missing_capability) return tl::unexpected(code.error());
    out.missing = code.error().message;
    return out;
  }
  DEMARC_TRY(const ptx::Module module, ptx::parse_whole(code->ptx, code->launch.ptx));
  if (const auto filled = fill_in(*code, device, module, allowance, out); !filled) {
    out.missing = filled.error().message;
  }
  return out;
}

}  // namespace

Result<gpu::Device> Executor::description() const {
  return missing_capability("{} has no description of a GPU", context().device);
}

Result<std::uint64_t> Executor::bytes_of_part(const Mode& /*mode*/, std::uint32_t /*parts*/) const {
  return missing_capability("{}: the memory of a part is not known before it is used",
                            context().device);
}

Result<WorkloadCode> Executor::code_of(const Workload& workload) const {
  return missing_capability("{}: {} has no code for it", workload.name, context().device);
}

Result<Forecast> forecast(const Plan& plan, const Executor& executor) {
  Forecast out;
  const auto device = executor.description();
  if (!device) {
    if (device.error().kind != ErrorKind::missing_capability) return tl::unexpected(device.error());
    out.missing = device.error().message;
    return out;
  }
  out.device = device->name;
  out.missing = lacks_for_forecast(*device);
  if (!out.missing.empty()) return out;
  std::set<std::string> specs;
  for (const Workload& workload : plan.victims) specs.insert(workload.spec);
  for (const Workload& workload : plan.aggressors) specs.insert(workload.spec);
  const Allowance allowance = allowance_for(std::max<std::size_t>(specs.size(), 1));
  std::map<std::string, WorkloadForecast> known;  // by spec
  const auto add = [&](const Workload& workload,
                       std::vector<WorkloadForecast>& into) -> Result<void> {
    auto found = known.find(workload.spec);
    if (found == known.end()) {
      DEMARC_TRY(auto fresh, forecast_of(workload, *device, executor, allowance));
      found = known.emplace(workload.spec, std::move(fresh)).first;
    }
    into.push_back(found->second);
    into.back().name = workload.name;
    return {};
  };
  for (const Workload& victim : plan.victims) DEMARC_CHECK(add(victim, out.victims));
  for (const Workload& aggressor : plan.aggressors) DEMARC_CHECK(add(aggressor, out.aggressors));
  return out;
}

}  // namespace demarc::study
