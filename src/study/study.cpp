// Runs a plan on an executor: baselines, then every cell of every mode.
#include "demarc/study/study.hpp"

#include <algorithm>
#include <map>

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

double in_gib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1ULL << 30U);
}

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
      if (!counts(cell)) continue;
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
        cell.samples_ns.clear();  // those of this visit are in doubt
        return tl::unexpected(
            Error{visited.error().kind, fmt::format("{}: {}", pair, visited.error().message)});
      }
    }
  }
  return {};
}

// Bytes on the card; 0 if they are not known before the workload runs.
std::uint64_t bytes_needed(const Executor& executor, const Workload& workload) {
  const auto code = executor.code_of(workload);
  if (!code) return 0;
  std::uint64_t bytes = 0;
  for (const gpu::Buffer& buffer : code->launch.buffers) bytes += buffer.host ? 0 : buffer.bytes;
  return bytes;
}

// Leaves out the cells whose workloads need more memory than a part has, before anything runs. Code
// is asked for only where a mode's memory is known.
void check_memory(const Plan& plan, const Executor& executor, std::vector<Cell>& cells) {
  std::map<std::string, std::uint64_t> needs;  // by the workload's spec
  std::map<std::size_t, std::uint64_t> rooms;  // by mode
  for (std::size_t mode = 0; mode < plan.modes.size(); ++mode) {
    if (const auto room = executor.bytes_of_part(plan.modes[mode], plan.parts)) rooms[mode] = *room;
  }
  for (Cell& cell : cells) {
    const auto room = rooms.find(cell.mode);
    if (room == rooms.end()) continue;
    const auto check = [&](const Workload& workload) {
      auto need = needs.find(workload.spec);
      if (need == needs.end()) {
        need = needs.emplace(workload.spec, bytes_needed(executor, workload)).first;
      }
      if (need->second <= room->second || !cell.not_run.empty()) return;
      cell.not_run = fmt::format("{} needs {:.1f} GiB, and a part has {:.1f} GiB", workload.name,
                                 in_gib(need->second), in_gib(room->second));
    };
    check(plan.victims[cell.victim]);
    if (cell.aggressor) check(plan.aggressors[*cell.aggressor]);
  }
}

// Why a mode ran none of its cells; nothing if it ran one.
std::string nothing_ran(const std::vector<Cell>& cells, std::size_t mode) {
  std::string why;
  for (const Cell& cell : cells) {
    if (cell.mode != mode) continue;
    if (cell.not_run.empty()) return "";
    if (why.empty()) why = cell.not_run;
  }
  return why;
}

// A mode that is unavailable has no figures, though some of its cells may have run. One that failed
// keeps those that had run by then.
void drop_cells(StudyResult& result) {
  std::erase_if(result.cells, [&](const Cell& cell) {
    const ModeSummary& mode = result.modes[cell.mode];
    return !mode.unavailable.empty() ||
           (!mode.failure.empty() && counts(cell) && cell.samples_ns.empty());
  });
}

// What lanes answered that end with an error counts no more.
void forget_mode(std::vector<Cell>& cells, std::size_t mode) {
  for (Cell& cell : cells) {
    if (cell.mode == mode) cell.samples_ns.clear();
  }
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
  check_memory(plan, executor, result.cells);
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
      if (auto finished = finish_lanes(**stage); !finished) {
        forget_mode(result.cells, mode);
        if (ran) ran = finished;
      }
    } else {
      ran = tl::unexpected(stage.error());
    }
    if (ran) {
      if (auto why = nothing_ran(result.cells, mode); !why.empty()) {
        ran = missing_capability("{}", why);
      }
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
    if (!cell.not_run.empty()) {
      out.push_back(fmt::format("{}: not run: {}", name_of(result.plan, cell), cell.not_run));
    }
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
