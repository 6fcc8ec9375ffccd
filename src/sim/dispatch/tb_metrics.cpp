// Computes the figures of a SimTBS run against the time of each kernel alone.
#include <algorithm>
#include <cmath>
#include <optional>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/dispatch/tb_report.hpp"
#include "dispatch/sm_overhead.hpp"
#include "dispatch/unit_costs.hpp"

namespace demarc::sim {
namespace {

class StandAlone {
 public:
  static Result<StandAlone> make(const TbConfig& config, TbModel model) {
    DEMARC_TRY(auto map, memory_fields(config, model));
    StandAlone alone(config, model, std::move(map));
    if (model == TbModel::simtbs_2020) {
      DEMARC_TRY(alone.unit_costs_, UnitCosts::make(config));
    }
    return alone;
  }

  Result<TbTicks> time(KernelIndex k) {
    const TbKernel& kernel = config_.kernels[k];
    const auto fields = config_.kernel_fields(k);
    std::uint32_t per_sm = ~std::uint32_t{0};
    for (std::size_t r = 0; r < config_.sm.n_sched; ++r) {
      if (fields[r] == 0) {
        if (model_ == TbModel::corrected) continue;
        return invalid_input(
            "{}:{}: request 0 of scheduling resource {}: the published program divides by it and "
            "crashes; use --model corrected",
            config_.source, kernel.line, r);
      }
      per_sm = std::min(per_sm, config_.sm.max[r] / fields[r]);
    }
    const std::uint64_t batch =
        std::min<std::uint64_t>(std::uint64_t{per_sm} * config_.sm.n_sms, kernel.n_tb);
    if (batch == 0) {
      return invalid_input(
          "{}:{}: a block of this kernel is larger than an SM: it has no "
          "stand-alone time",
          config_.source, kernel.line);
    }
    // Batches of one size take the same single-precision time, and the product of such a time and a
    // count below 2^29 is the exact sum.
    const std::uint64_t full_batches = kernel.n_tb / batch;
    double sum = static_cast<double>(full_batches) * double{batch_time(k, batch)};
    const std::uint64_t rest = kernel.n_tb % batch;
    if (rest != 0) sum += double{batch_time(k, rest)};
    if (!(sum >= 1) || sum > double{~std::uint32_t{0}}) {
      return invalid_input("{}:{}: the stand-alone time of this kernel comes to {}", config_.source,
                           kernel.line, sum);
    }
    return TbTicks(static_cast<std::uint32_t>(sum));
  }

 private:
  StandAlone(const TbConfig& config, TbModel model, std::vector<std::uint32_t> memory_map)
      : config_(config),
        model_(model),
        memory_map_(std::move(memory_map)),
        overhead_(config),
        used_(config.resources()),
        memory_(config.memory.size()) {}

  [[nodiscard]] float batch_time(KernelIndex k, std::uint64_t blocks) {
    return static_cast<float>(config_.kernels[k].duration.raw()) * (1.0F + overhead(k, blocks));
  }

  [[nodiscard]] float overhead(KernelIndex k, std::uint64_t blocks) {
    if (unit_costs_) return overhead_of_2020(k, blocks);
    const auto fields = config_.kernel_fields(k);
    const auto per_sm = static_cast<std::uint32_t>(ceil_div(blocks, config_.sm.n_sms));
    for (std::size_t r = 0; r < used_.size(); ++r) used_[r] = per_sm * fields[r];
    for (std::size_t m = 0; m < memory_.size(); ++m) {
      memory_[m] = static_cast<std::uint32_t>(blocks) * fields[memory_map_[m]];
    }
    return overhead_.sm_cost(used_.data()) + overhead_.memory_cost(memory_);
  }

  // A share of the memory's costs for each block; SMs hold floor(blocks / SMs) of them.
  [[nodiscard]] float overhead_of_2020(KernelIndex k, std::uint64_t blocks) const {
    const auto fields = config_.kernel_fields(k);
    const auto count = static_cast<std::uint32_t>(blocks);
    return unit_costs_->sm(count / config_.sm.n_sms * fields[0]) +
           unit_costs_->memory(count * fields[1]) / static_cast<float>(count);
  }

  const TbConfig& config_;
  TbModel model_;
  std::vector<std::uint32_t> memory_map_;
  OverheadModel overhead_;
  std::optional<UnitCosts> unit_costs_;  // of simtbs-2020
  std::vector<std::uint32_t> used_, memory_;
};

}  // namespace

Result<FiguresOfKernels> kernel_figures(const TbConfig& config, TbModel model, const TbRun& run) {
  DEMARC_TRY(StandAlone alone, StandAlone::make(config, model));
  FiguresOfKernels figures(run.kernels.size());
  for (const KernelIndex k : figures.keys()) {
    const KernelOutcome& outcome = run.kernels[k];
    if (outcome.end == KernelOutcome::never) continue;
    DEMARC_TRY(const TbTicks time, alone.time(k));
    const TbTicks after = outcome.end + 1_ticks;
    figures[k] = KernelFigures{time, after - outcome.first_run, after - config.kernels[k].start};
  }
  return figures;
}

Result<TbMetrics> tb_metrics(const TbConfig& config, TbModel model, const TbRun& run) {
  DEMARC_TRY(const auto figures, kernel_figures(config, model, run));
  TbMetrics metrics;
  metrics.ticks = run.ticks;
  metrics.kernels = figures.size();
  double alone = 0;
  double speed = 0;
  double speed_squared = 0;
  for (const auto& kernel : figures) {
    if (!kernel) continue;
    ++metrics.finished;
    metrics.antt += kernel->slowdown();
    metrics.antt_queue += kernel->queue_slowdown();
    metrics.worst_slowdown = std::max(metrics.worst_slowdown, kernel->queue_slowdown());
    alone += kernel->alone.raw();
    const double s = 1.0 / kernel->queue_slowdown();
    speed += s;
    speed_squared += s * s;
  }
  const double ticks = std::max(run.ticks, 1_ticks).raw();
  if (metrics.finished > 0) {
    const auto count = static_cast<double>(metrics.finished);
    metrics.antt /= count;
    metrics.antt_queue /= count;
    metrics.fairness = speed * speed / (count * speed_squared);
  }
  const auto arrived = std::count_if(config.kernels.begin(), config.kernels.end(),
                                     [&](const TbKernel& k) { return k.start < run.ticks; });
  metrics.finished_share =
      arrived == 0 ? 1.0 : static_cast<double>(metrics.finished) / static_cast<double>(arrived);
  metrics.kernels_per_tick = static_cast<double>(metrics.finished) / ticks;
  metrics.stp = alone / ticks;
  metrics.blocks_per_tick = static_cast<double>(run.finished_blocks) / ticks;
  const auto pairs = static_cast<double>(run.placed_blocks) - static_cast<double>(metrics.finished);
  metrics.neighbours_together =
      pairs > 0 ? static_cast<double>(run.neighbours_together) / pairs : 0;
  for (std::size_t r = 0; r < config.resources(); ++r) {
    const double capacity = double{1.0} * config.sm.n_sms * config.sm.max[r];
    metrics.utilization.push_back(100.0 * static_cast<double>(run.sm_use[r]) / ticks / capacity);
    metrics.utilization_full.push_back(100.0 * static_cast<double>(run.sm_use_full[r]) / ticks /
                                       capacity);
  }
  for (std::size_t m = 0; m < config.memory.size(); ++m) {
    metrics.memory.push_back(static_cast<double>(run.memory_use[m]) / ticks);
    metrics.memory_full.push_back(static_cast<double>(run.memory_use_full[m]) / ticks);
  }
  return metrics;
}

}  // namespace demarc::sim
