// Runs a plan on an executor: baselines, then every cell of every mode.
#include "demarc/study/study.hpp"

#include <algorithm>
#include <chrono>

namespace demarc::study {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

// Warm-up, then batches until the rule is satisfied. Appends to `into`; returns launches discarded.
Result<std::uint32_t> take_samples(Lane& lane, const StoppingRule& rule, std::vector<double>& into,
                                   std::vector<double>& runs) {
  std::uint32_t discarded = 0;
  if (rule.warm_up > 0) {
    DEMARC_TRY(const auto thrown_away, lane.sample(rule.warm_up, rule.longest_seconds / 4));
    discarded = static_cast<std::uint32_t>(thrown_away.size());
  }
  const auto start = Clock::now();
  std::vector<double> visit;
  while (true) {
    const std::size_t wanted = visit.size() < rule.least
                                   ? rule.least - visit.size()
                                   : std::min<std::size_t>(rule.least, rule.most - visit.size());
    const double left = rule.longest_seconds - seconds_since(start);
    if (wanted == 0 || (left <= 0 && !visit.empty())) break;
    DEMARC_TRY(const auto batch,
               lane.sample(static_cast<std::uint32_t>(wanted), std::max(left, 0.001)));
    if (batch.empty()) return check_failed("the victim's lane gave no times");
    visit.insert(visit.end(), batch.begin(), batch.end());
    const auto with_gaps = lane.last_runs();
    runs.insert(runs.end(), with_gaps.begin(), with_gaps.end());
    if (visit.size() >= rule.least && relative_precision(describe(visit)) <= rule.precision) break;
  }
  into.insert(into.end(), visit.begin(), visit.end());
  return discarded;
}

// What is wrong with `seen` beside the solo run, or nothing.
std::string output_fault(const Outputs& seen, const Outputs& solo) {
  if (!seen.mismatch.empty()) return seen.mismatch;
  if (solo.exact && seen.digest != solo.digest) {
    return fmt::format("outputs have digest {:016x}, its solo run {:016x}", seen.digest,
                       solo.digest);
  }
  return {};
}

// The aggressor at work in lanes 1 ... n-1.
class AggressorsRunning {
 public:
  static Result<AggressorsRunning> begin(Stage& stage, const Workload& aggressor) {
    AggressorsRunning running(stage);
    for (std::uint32_t i = 1; i < stage.lanes(); ++i) {
      DEMARC_CHECK(stage.lane(i).load(aggressor));
    }
    for (std::uint32_t i = 1; i < stage.lanes(); ++i) {
      DEMARC_CHECK(stage.lane(i).start());
      running.started_ = i;
    }
    for (std::uint32_t i = 1; i < stage.lanes(); ++i) DEMARC_CHECK(stage.lane(i).visit_begins());
    return running;
  }
  AggressorsRunning(AggressorsRunning&& other) noexcept
      : stage_(other.stage_), started_(std::exchange(other.started_, 0)) {}
  AggressorsRunning& operator=(AggressorsRunning&&) = delete;
  ~AggressorsRunning() {
    for (; started_ > 0; --started_) (void)stage_->lane(started_).stop();
  }

  Result<void> check_work() {
    for (std::uint32_t i = 1; i < stage_->lanes(); ++i) {
      DEMARC_CHECK(stage_->lane(i).visit_ended());
    }
    return {};
  }

  // Stops them all; puts finished runs a second over all lanes, and remarks, into the cell.
  Result<void> end(Cell& cell) {
    cell.aggressor_rate = 0;
    Result<void> outcome;
    for (; started_ > 0; --started_) {
      Lane& lane = stage_->lane(started_);
      auto stopped = lane.stop();
      if (stopped) {
        cell.aggressor_rate += *stopped;
      } else if (outcome) {
        outcome = tl::unexpected(std::move(stopped).error());
      }
      if (auto remark = lane.remark(); !remark.empty()) cell.remarks.push_back(std::move(remark));
    }
    return outcome;
  }

 private:
  explicit AggressorsRunning(Stage& stage) : stage_(&stage) {}
  Stage* stage_;
  std::uint32_t started_ = 0;  // lanes 1 ... started_ run
};

// An error of an aggressor: of the cell where a command was not at work, else the mode's.
Result<void> aggressor_error(const Workload& aggressor, Result<void> outcome, Cell& cell) {
  if (outcome || !is_command(aggressor) || outcome.error().kind != ErrorKind::check_failed) {
    return outcome;
  }
  if (cell.error.empty()) cell.error = std::move(outcome).error().message;
  return {};
}

Result<void> time_victim(const Plan& plan, Lane& victim, const Outputs& solo, Cell& cell) {
  DEMARC_TRY(const std::uint32_t discarded,
             take_samples(victim, plan.rule, cell.samples_ns, cell.runs_ns));
  cell.discarded += discarded;
  DEMARC_TRY(const Outputs seen, victim.outputs());
  if (cell.error.empty()) cell.error = output_fault(seen, solo);
  return {};
}

Result<void> visit_cell(const Plan& plan, Stage& stage, const Outputs& solo, Cell& cell) {
  Lane& victim = stage.lane(0);
  DEMARC_CHECK(victim.load(plan.victims[cell.victim]));
  if (!cell.aggressor) return time_victim(plan, victim, solo, cell);
  const Workload& aggressor = plan.aggressors[*cell.aggressor];
  auto running = AggressorsRunning::begin(stage, aggressor);
  if (!running) return aggressor_error(aggressor, tl::unexpected(running.error()), cell);
  DEMARC_CHECK(time_victim(plan, victim, solo, cell));  // its outputs too, beside the aggressor
  DEMARC_CHECK(aggressor_error(aggressor, running->check_work(), cell));
  return aggressor_error(aggressor, running->end(cell), cell);
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
    DEMARC_CHECK(stage->lane(0).load(workload));
    DEMARC_TRY(run.outputs, stage->lane(0).outputs());
    if (!run.outputs.mismatch.empty()) {
      return check_failed("victim '{}' alone on the whole GPU already computes a wrong result: {}",
                          workload.name, run.outputs.mismatch);
    }
    std::vector<double> with_gaps;
    DEMARC_CHECK(take_samples(stage->lane(0), plan.rule, run.baseline.samples_ns, with_gaps));
    run.baseline.times = describe(run.baseline.samples_ns);
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<void> finish_lanes(Stage& stage) {
  for (std::uint32_t i = 0; i < stage.lanes(); ++i) DEMARC_CHECK(stage.lane(i).finish());
  return {};
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
      auto visited = visit_cell(plan, stage, solo[visit.victim].outputs, cell);
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
  DEMARC_CHECK(executor.prepare(plan, progress));
  StudyProgress steps(plan, progress);
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
    return missing_capability("{} can run none of the modes asked for:{}", result.device.device,
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
