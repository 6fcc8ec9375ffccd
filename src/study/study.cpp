// Runs a plan on an executor: baselines, then every cell of every mode.
#include "demarc/study/study.hpp"

#include <algorithm>

#include "visit.hpp"

namespace demarc::study {
namespace {

// Cells of a mode lie together: victim by victim, idle first, then the aggressors in plan order.
std::size_t cell_index(const Plan& plan, std::size_t mode, const Visit& visit) {
  const std::size_t row = plan.aggressors.size() + 1;
  const std::size_t column = visit.aggressor ? *visit.aggressor + 1 : 0;
  return (mode * plan.victims.size() + visit.victim) * row + column;
}

std::vector<Cell> empty_cells(const Plan& plan) {
  std::vector<Cell> cells(plan.modes.size() * plan.victims.size() * (plan.aggressors.size() + 1));
  for (std::size_t mode = 0; mode < plan.modes.size(); ++mode) {
    for (std::size_t victim = 0; victim < plan.victims.size(); ++victim) {
      for (std::size_t column = 0; column <= plan.aggressors.size(); ++column) {
        const auto aggressor = column == 0 ? std::nullopt : std::optional<std::size_t>(column - 1);
        Cell& cell = cells[cell_index(plan, mode, {victim, aggressor})];
        cell.mode = mode;
        cell.victim = victim;
        cell.aggressor = aggressor;
      }
    }
  }
  return cells;
}

// Steps of a study counted for the progress bar: one a baseline, one a visit.
class StudyProgress {
 public:
  StudyProgress(const Plan& plan, const Progress& progress)
      : progress_(progress),
        total_(plan.victims.size() *
               (1 + plan.rounds * plan.modes.size() * (plan.aggressors.size() + 1))) {}
  void step(const std::string& what) {
    report_progress(
        progress_, std::min(1.0, static_cast<double>(done_++) / static_cast<double>(total_)), what);
  }

 private:
  const Progress& progress_;
  std::size_t done_ = 0;
  std::size_t total_;
};

struct SoloRun {
  Baseline baseline;
  Outputs outputs;
};

Result<std::vector<SoloRun>> run_baselines(const Plan& plan, Executor& executor,
                                           StudyProgress& progress) {
  DEMARC_TRY(const auto stage, executor.whole());
  std::vector<SoloRun> runs;
  for (std::size_t victim = 0; victim < plan.victims.size(); ++victim) {
    const Workload& workload = plan.victims[victim];
    progress.step(fmt::format("{} alone on the whole GPU", workload.name));
    SoloRun run;
    run.baseline.victim = victim;
    DEMARC_TRY(run.outputs, solo_outputs(stage->lane(0), workload));
    std::vector<double> with_gaps;
    DEMARC_CHECK(take_samples(stage->lane(0), plan.rule, run.baseline.samples_ns, with_gaps));
    run.baseline.times = describe(run.baseline.samples_ns);
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<void> run_mode(const Plan& plan, Stage& stage, std::size_t mode,
                      const std::vector<SoloRun>& solo, std::vector<Cell>& cells,
                      StudyProgress& progress) {
  for (std::uint32_t round = 0; round < plan.rounds; ++round) {
    for (const Visit& visit : visit_order(plan, mode, round)) {
      Cell& cell = cells[cell_index(plan, mode, visit)];
      const std::string pair =
          fmt::format("{} beside {}", plan.victims[visit.victim].name,
                      visit.aggressor ? plan.aggressors[*visit.aggressor].name : "-");
      progress.step(fmt::format("{}: {}", plan.modes[mode].name(), pair));
      auto visited = visit_cell(plan.rule, stage,
                                {&plan.victims[visit.victim],
                                 visit.aggressor ? &plan.aggressors[*visit.aggressor] : nullptr,
                                 &solo[visit.victim].outputs},
                                cell);
      if (!visited) {
        return tl::unexpected(
            Error{visited.error().kind, fmt::format("{}: {}", pair, visited.error().message)});
      }
    }
  }
  return finish_lanes(stage);
}

// A mode that is unavailable or failed has no figures, though some of its cells were run.
void drop_cells(StudyResult& result) {
  std::erase_if(result.cells, [&](const Cell& cell) {
    const ModeSummary& mode = result.modes[cell.mode];
    return !mode.unavailable.empty() || !mode.failure.empty();
  });
}

std::string name_of(const Plan& plan, const Cell& cell) {
  return fmt::format("{}: {} beside {}", plan.modes[cell.mode].name(),
                     plan.victims[cell.victim].name,
                     cell.aggressor ? plan.aggressors[*cell.aggressor].name : "-");
}

void collect_errors(StudyResult& result) {
  for (const ModeSummary& mode : result.modes) {
    if (mode.failure.empty()) continue;
    result.errors.push_back(
        fmt::format("{}: {}", result.plan.modes[mode.mode].name(), mode.failure));
  }
  for (Cell& cell : result.cells) {
    if (cell.error.empty()) {
      cell.times = describe(cell.samples_ns);
      cell.runs = describe(cell.runs_ns.empty() ? cell.samples_ns : cell.runs_ns);
      continue;
    }
    result.errors.push_back(fmt::format("{}: {}", name_of(result.plan, cell), cell.error));
  }
}

}  // namespace

Result<StudyResult> run_study(const Plan& plan, Executor& executor, const Progress& progress) {
  DEMARC_CHECK(check_plan(plan));
  StudyResult result;
  result.plan = plan;
  result.device = executor.context();
  result.cells = empty_cells(plan);
  result.modes.resize(plan.modes.size());
  DEMARC_TRY(result.forecast, forecast(plan, executor));
  // A simulated GPU does nearly all of its work here, a card none.
  double prepared = 0;
  const Progress preparing = [&](double share, std::string_view what) {
    prepared = 0.95;
    report_progress(progress, prepared * share, what);
  };
  DEMARC_CHECK(executor.prepare(plan, preparing));
  const Progress running = [&](double share, std::string_view what) {
    report_progress(progress, prepared + (1 - prepared) * share, what);
  };
  StudyProgress steps(plan, running);
  DEMARC_TRY(const auto solo, run_baselines(plan, executor, steps));
  for (const SoloRun& run : solo) result.baselines.push_back(run.baseline);

  std::string refusals;
  std::size_t missing = 0;
  auto order = mode_order(plan);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return executor.rank(plan.modes[a]) < executor.rank(plan.modes[b]);
  });
  for (const std::size_t mode : order) {
    ModeSummary& summary = result.modes[mode];
    summary.mode = mode;
    auto stage = executor.divide(plan.modes[mode], plan.parts);
    Result<void> ran;
    if (stage) {
      summary.account = (*stage)->account();
      ran = run_mode(plan, **stage, mode, solo, result.cells, steps);
    } else {
      ran = tl::unexpected(stage.error());
    }
    if (ran) continue;
    if (ran.error().kind == ErrorKind::invalid_input) return tl::unexpected(ran.error());
    if (ran.error().kind == ErrorKind::check_failed) {
      summary.failure = ran.error().message;
      continue;
    }
    summary.unavailable = ran.error().message;
    refusals += fmt::format("\n  {}: {}", plan.modes[mode].name(), summary.unavailable);
    ++missing;
  }
  if (missing == plan.modes.size()) {
    return missing_capability("{} can run none of the chosen modes:{}", result.device.device,
                              refusals);
  }
  drop_cells(result);
  collect_errors(result);
  summarize(result);
  result.recommendation = recommend(result);
  report_progress(progress, 1.0, "done");
  return result;
}

std::vector<std::string> remarks_of(const StudyResult& result) {
  std::vector<std::string> out;
  for (const Cell& cell : result.cells) {
    for (const std::string& remark : cell.remarks) {
      out.push_back(fmt::format("{}: {}", name_of(result.plan, cell), remark));
    }
  }
  return out;
}

Result<StudyResult> forecast_study(const Plan& plan, const Executor& executor) {
  DEMARC_CHECK(check_plan(plan));
  StudyResult result;
  result.plan = plan;
  result.device = executor.context();
  DEMARC_TRY(result.forecast, forecast(plan, executor));
  if (!result.forecast.missing.empty()) {
    return missing_capability("no forecast: {}", result.forecast.missing);
  }
  result.recommendation = recommend(plan, result.forecast);
  return result;
}

}  // namespace demarc::study
