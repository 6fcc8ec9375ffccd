// Runs dispatch policies over many seeds and settings, on all cores, and estimates means.
#include "demarc/sim/dispatch/tb_study.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <iterator>
#include <mutex>
#include <optional>

#include "demarc/base/json.hpp"
#include "demarc/base/parallel.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "demarc/sim/dispatch/tb_compare.hpp"

namespace demarc::sim {
namespace {

template <class Value>
Estimate estimate_of(const std::vector<TbMetrics>& runs, Value value) {
  std::vector<double> samples;
  samples.reserve(runs.size());
  for (const TbMetrics& run : runs) samples.push_back(value(run));
  return estimate(samples);
}

// Where the runs of a cell come from: a workload as it is (no seed), or one that is drawn.
struct Source {
  const TbConfig* config = nullptr;  // none: generated for the cell
  std::optional<std::uint64_t> seed;
};

Result<std::vector<Source>> sources_of(const TbStudyOptions& options) {
  std::vector<Source> sources;
  const auto add_seeds = [&](const TbConfig* config) {
    for (std::uint32_t i = 0; i < options.seeds; ++i) {
      sources.push_back({config, options.first_seed + i});
    }
  };
  if (options.workloads.empty()) add_seeds(nullptr);
  for (const TbConfig& config : options.workloads) {
    const TbConfig& first = options.workloads.front();
    if (config.sm.n_sms != first.sm.n_sms || config.sm.max != first.sm.max) {
      return invalid_input(
          "{}: its machine differs from that of {}; compare workloads of one machine",
          config.source, first.source);
    }
    if (config.kernels.empty()) {
      add_seeds(&config);
    } else {
      sources.push_back({&config, std::nullopt});
    }
  }
  return sources;
}

Result<TbConfig> workload_of(const TbCell& cell, const Source& source, std::uint32_t ticks) {
  if (source.config != nullptr) {
    if (!source.seed) return *source.config;
    return generate_workload(*source.config, cell.generation, *source.seed);
  }
  const TbMachine machine{cell.sms, 8};
  TbConfig config = paper_config(machine, cell.mix, cell.level, ticks);
  if (cell.generation == TbGeneration::published_2020) {
    DEMARC_TRY(config, paper_config_of_2020(machine, cell.mix, cell.level, ticks));
  }
  // One kernel a tick at most: larger machines need larger kernels to reach the load.
  config.workload.n_tb.high = 128 * std::max(cell.sms, 132U) / 132;
  return generate_workload(std::move(config), cell.generation, source.seed.value_or(0));
}

// Runs every cell with every source; the result does not depend on the number of threads.
Result<TbStudy> run_cells(const TbStudyOptions& options, std::vector<TbCell> cells,
                          const Progress& progress) {
  struct Slot {
    std::optional<TbMetrics> metrics;
    std::optional<Error> error;
  };
  DEMARC_TRY(const std::vector<Source> sources, sources_of(options));
  std::vector<Slot> slots(cells.size() * sources.size());
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(slots.size(), options.threads, [&](std::size_t i) {
    const TbCell& cell = cells[i / sources.size()];
    const auto work = [&]() -> Result<std::optional<TbMetrics>> {
      DEMARC_TRY(const TbConfig config,
                 workload_of(cell, sources[i % sources.size()], options.ticks));
      TbOptions run_options;
      run_options.model = cell.model;
      run_options.policy_rules = cell.policy_rules;
      run_options.policy = cell.policy;
      DEMARC_TRY(const TbRun run, simulate(config, run_options));
      if (run.out_of_memory) return std::nullopt;
      DEMARC_TRY(TbMetrics metrics, tb_metrics(config, cell.model, run));
      return metrics;
    };
    auto result = work();
    if (result) {
      slots[i].metrics = std::move(*result);
    } else {
      slots[i].error = std::move(result).error();
    }
    const std::scoped_lock lock(mutex);
    report_progress(progress, static_cast<double>(++done) / static_cast<double>(slots.size()),
                    cell.policy);
  });
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].error) return tl::unexpected(std::move(*slots[i].error));
    if (slots[i].metrics) cells[i / sources.size()].runs.push_back(std::move(*slots[i].metrics));
  }
  return TbStudy{options, sources.size(), std::move(cells)};
}

}  // namespace

Estimate estimate(const std::vector<double>& samples) {
  if (samples.empty()) return {};
  const auto n = static_cast<double>(samples.size());
  double sum = 0;
  for (const double s : samples) sum += s;
  const double mean = sum / n;
  if (samples.size() < 2) return {mean, mean, mean};
  double squares = 0;
  for (const double s : samples) squares += (s - mean) * (s - mean);
  const boost::math::students_t_distribution<double> student(n - 1);
  const double t = boost::math::quantile(student, 0.975);  // 95 % lie between -t and t
  const double half = t * std::sqrt(squares / (n - 1) / n);
  return {mean, mean - half, mean + half};
}

Estimate TbCell::antt() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.antt; });
}
Estimate TbCell::antt_queue() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.antt_queue; });
}
Estimate TbCell::stp() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.stp; });
}
Estimate TbCell::utilization() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.utilization[0]; });
}
Estimate TbCell::utilization_full() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.utilization_full[0]; });
}
Estimate TbCell::finished_share() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.finished_share; });
}
Estimate TbCell::fairness() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.fairness; });
}
Estimate TbCell::neighbours_together() const {
  return estimate_of(runs, [](const TbMetrics& m) { return m.neighbours_together; });
}

const TbCell* TbStudy::find(const TbLine& line, TbMix mix, std::uint32_t level,
                            std::uint32_t sms) const {
  const auto at = std::find_if(cells.begin(), cells.end(), [&](const TbCell& cell) {
    return cell.line() == line && cell.mix == mix && cell.level == level && cell.sms == sms;
  });
  return at == cells.end() ? nullptr : &*at;
}

Result<TbStudy> reproduce_paper(const TbStudyOptions& options, const Progress& progress) {
  std::vector<TbCell> cells;
  const auto add = [&](TbMix mix, std::uint32_t level, std::uint32_t sms) {
    for (const TbLine& line : paper_lines) {
      cells.push_back({line.model,
                       line.policy_rules,
                       TbGeneration::published_2020,
                       mix,
                       std::string(line.policy),
                       level,
                       sms,
                       {}});
    }
  };
  if (!options.workloads.empty()) {
    add(TbMix::given, 0, options.workloads.front().sm.n_sms);
    return run_cells(options, std::move(cells), progress);
  }
  for (const TbMix mix : {TbMix::uniform, TbMix::extreme}) {
    for (const std::uint32_t level : {10U, 20U, 40U, 60U, 80U, 90U, 100U, 110U, 120U, 125U}) {
      add(mix, level, 16);
    }
  }
  return run_cells(options, std::move(cells), progress);
}

Result<TbStudy> compare_policies(const TbStudyOptions& options, const Progress& progress) {
  // Each once, ascending.
  const auto set_of = [](std::vector<std::uint32_t> values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  };
  std::vector<std::uint32_t> sizes = set_of(options.sizes);
  std::vector<std::uint32_t> levels = set_of(options.levels);
  if (sizes.empty()) sizes = {16, 32, 66, 132, 264, 528};
  if (levels.empty()) levels = {40, 80, 100};
  std::vector<TbCell> cells;
  const auto add = [&](TbMix mix, std::uint32_t level, std::uint32_t sms) {
    for (const PolicyInfo& info : dispatch_policies()) {
      cells.push_back({TbModel::corrected,
                       TbModel::corrected,
                       TbGeneration::corrected,
                       mix,
                       std::string(info.name),
                       level,
                       sms,
                       {}});
    }
  };
  if (!options.workloads.empty()) {
    if (!options.sizes.empty() || !options.levels.empty()) {
      return invalid_input("a given workload brings its machine and its load; leave out {}",
                           options.sizes.empty() ? "levels" : "sizes");
    }
    add(TbMix::given, 0, options.workloads.front().sm.n_sms);
    return run_cells(options, std::move(cells), progress);
  }
  for (const std::uint32_t sms : sizes) {
    for (const TbMix mix : {TbMix::uniform, TbMix::extreme, TbMix::multi}) {
      for (const std::uint32_t level : levels) add(mix, level, sms);
    }
  }
  return run_cells(options, std::move(cells), progress);
}

std::string study_json(const TbStudy& study) {
  Json root{{"schema", "demarc.schedule.study/1"},
            {"version", version()},
            {"revision", revision()},
            {"seeds", study.options.seeds},
            {"first_seed", study.options.first_seed},
            {"ticks", study.options.ticks},
            {"workloads", Json::array()},
            {"cells", Json::array()}};
  for (const TbConfig& workload : study.options.workloads) {
    root["workloads"].push_back(workload.source);
  }
  const auto value = [](const Estimate& e) {
    return Json{{"mean", e.mean}, {"low", e.low}, {"high", e.high}};
  };
  for (const TbCell& cell : study.cells) {
    root["cells"].push_back({{"model", to_string(cell.model)},
                             {"policy_rules", to_string(cell.policy_rules)},
                             {"mix", to_string(cell.mix)},
                             {"policy", cell.policy},
                             {"level", cell.level},
                             {"sms", cell.sms},
                             {"runs", cell.runs.size()},
                             {"antt", value(cell.antt())},
                             {"antt_with_queueing", value(cell.antt_queue())},
                             {"stp", value(cell.stp())},
                             {"utilization_percent", value(cell.utilization())},
                             {"utilization_with_last_tick_percent", value(cell.utilization_full())},
                             {"finished_share", value(cell.finished_share())},
                             {"fairness", value(cell.fairness())},
                             {"neighbours_together", value(cell.neighbours_together())}});
  }
  return json_text(root, 2) + "\n";
}

std::string study_table(const TbStudy& study) {
  std::string out;
  if (study.options.workloads.empty()) {
    append(out, "seeds: {}, ticks: {}; ", study.options.seeds, study.options.ticks);
  } else {
    append(out, "workloads: {}; ", study.runs);
  }
  out += "means with 95 % confidence half-widths\n";
  append(out,
         "{:<12} {:<8} {:>4} {:>5} {:<13} {:<12} {:>15} {:>16} {:>7} {:>7} {:>7} {:>9} {:>8}\n",
         "model", "mix", "SMs", "level", "policy", "as of", "ANTT", "ANTT+wait", "STP", "SM use",
         "+last", "finished", "fairness");
  for (const TbCell& cell : study.cells) {
    const Estimate antt = cell.antt();
    const Estimate wait = cell.antt_queue();
    append(out,
           "{:<12} {:<8} {:>4} {:>5} {:<13} {:<12} {:>7.3f} ±{:>6.3f} {:>8.3f} ±{:>6.2f} {:>7.3f} "
           "{:>6.1f}% {:>6.1f}% {:>8.1f}% {:>8.3f}\n",
           to_string(cell.model), to_string(cell.mix), cell.sms,
           cell.mix == TbMix::given ? std::string("-") : fmt::format("{}%", cell.level),
           cell.policy, to_string(cell.policy_rules), antt.mean, antt.high - antt.mean, wait.mean,
           wait.high - wait.mean, cell.stp().mean, cell.utilization().mean,
           cell.utilization_full().mean, 100 * cell.finished_share().mean, cell.fairness().mean);
  }
  return out;
}

}  // namespace demarc::sim
