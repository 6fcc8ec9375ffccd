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

double in_gib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / (1ULL << 30U);
}

// Bytes on the card; 0 if they are not known before the workload runs.
std::uint64_t bytes_needed(const Executor& executor, const Workload& workload) {
  const auto code = executor.code_of(workload);
  if (!code) return 0;
  std::uint64_t bytes = 0;
  for (const gpu::Buffer& buffer : code->launch.buffers) bytes += buffer.host ? 0 : buffer.bytes;
  return bytes;
}

bool uses_host_memory(const Executor& executor, const Workload& workload) {
  const auto code = executor.code_of(workload);
  return code && std::any_of(code->launch.buffers.begin(), code->launch.buffers.end(),
                             [](const gpu::Buffer& buffer) { return buffer.host; });
}

// That all data of the workloads fit into the L2, if so. Nothing if a workload's data are not
// known.
std::string doubt_of(const Plan& plan, const Executor& executor) {
  const auto device = executor.description();
  if (!device) return "";
  const std::uint64_t l2 = device->l2.size_bytes;
  for (const auto* list : {&plan.victims, &plan.aggressors}) {
    for (const Workload& workload : *list) {
      const std::uint64_t bytes = bytes_needed(executor, workload);
      if (bytes == 0 || bytes > l2) return "";
    }
  }
  return fmt::format(
      "All data of each workload fit into the L2 ({:.1f} MiB), so these figures say nothing about "
      "workloads that load the DRAM, which slow each other more",
      static_cast<double>(l2) / (1U << 20U));
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

// Leaves out, before anything runs, the cells whose workload uses host memory as a tenant, because
// no coloured kernel reaches it.
void check_host_memory(const Plan& plan, const Executor& executor, std::vector<Cell>& cells) {
  std::map<std::string, bool> in_host;  // by the workload's spec
  for (Cell& cell : cells) {
    if (!plan.modes[cell.mode].traits().leased) continue;
    const auto check = [&](const Workload& workload) {
      auto known = in_host.find(workload.spec);
      if (known == in_host.end()) {
        known = in_host.emplace(workload.spec, uses_host_memory(executor, workload)).first;
      }
      if (!known->second || !cell.not_run.empty()) return;
      cell.not_run =
          fmt::format("{} uses host memory, which the coloured kernels of a tenant cannot reach",
                      workload.name);
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

std::string name_of(const Plan& plan, const Cell& cell) {
  return fmt::format("{}: {} next to {}", plan.modes[cell.mode].name(),
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

// "2 streams of one process" of "2 streams of one process; each part has ...".
std::string_view how_parts_run(std::string_view account) {
  return account.substr(0, account.find(';'));
}

// Takes over what an earlier run measured. Its cells may be fewer than those of the plan.
void take_over(const StudyResult& earlier, StudyResult& result) {
  for (const Baseline& baseline : earlier.baselines) result.baselines.push_back(baseline);
  for (const Cell& cell : earlier.cells) {
    if (!counts(cell) || cell.visits == 0) continue;
    result.cells[cell_index(result.plan, cell.mode, {cell.victim, cell.aggressor})] = cell;
  }
  for (const ModeSummary& mode : earlier.modes) result.modes[mode.mode].account = mode.account;
}

// Cells that were to be measured and were not, once the study was ended early.
void name_cells_not_run(StudyResult& result) {
  std::size_t measured = 0;
  std::size_t cells = 0;
  for (Cell& cell : result.cells) {
    const ModeSummary& mode = result.modes[cell.mode];
    if (!mode.unavailable.empty() || !mode.failure.empty() || !counts(cell)) continue;
    ++cells;
    if (cell.visits >= result.plan.rounds) ++measured;
    if (cell.visits == 0) cell.not_run = interrupted_cell;
  }
  result.interrupted =
      fmt::format("the study was ended early and measured {} of {} cells", measured, cells);
}

// A study as it goes through its plan.
class StudyRunner {
 public:
  StudyRunner(const Plan& plan, Executor& executor, const RunOptions& options)
      : plan_(plan), executor_(executor), options_(options) {}

  Result<StudyResult> run() {
    DEMARC_CHECK(check_plan(plan_));
    result_.plan = plan_;
    result_.build = this_build();
    result_.device = executor_.context();
    result_.contents = contents_of(plan_);
    result_.cells = empty_cells(plan_);
    result_.modes.resize(plan_.modes.size());
    for (std::size_t mode = 0; mode < plan_.modes.size(); ++mode) result_.modes[mode].mode = mode;
    if (options_.earlier != nullptr) take_over(*options_.earlier, result_);
    DEMARC_TRY(result_.forecast, forecast(plan_, executor_));
    result_.doubt = doubt_of(plan_, executor_);
    check_memory(plan_, executor_, result_.cells);
    check_host_memory(plan_, executor_, result_.cells);
    DEMARC_CHECK(prepare());
    DEMARC_CHECK(run_baselines());
    DEMARC_CHECK(run_modes());
    StudyResult ended = so_far();
    if (ended.interrupted.empty()) report_progress(options_.progress, 1.0, "done");
    return ended;
  }

 private:
  [[nodiscard]] Cell& cell_of(std::size_t mode, const Visit& visit) {
    return result_.cells[cell_index(plan_, mode, visit)];
  }

  [[nodiscard]] bool has_baseline(std::size_t victim) const {
    return std::any_of(result_.baselines.begin(), result_.baselines.end(),
                       [victim](const Baseline& one) { return one.victim == victim; });
  }

  [[nodiscard]] bool is_left(const PlannedVisit& planned) {
    if (!planned.mode) return !has_baseline(planned.visit.victim);
    const Cell& cell = cell_of(*planned.mode, planned.visit);
    return counts(cell) && cell.visits < plan_.rounds;
  }

  Result<void> prepare() {
    std::vector<PlannedVisit> left = planned_visits(plan_);
    std::erase_if(left, [this](const PlannedVisit& planned) { return !is_left(planned); });
    left_ = left.size();
    for (PlannedVisit& planned : left) {
      if (!planned.mode) continue;
      const Cell& cell = cell_of(*planned.mode, planned.visit);
      left_ += plan_.rounds - cell.visits - 1;
      planned.taken = cell.discarded + cell.samples_ns.size();
    }
    return executor_.prepare(plan_, left, options_.progress);
  }

  // Before each measurement. True: the study ends here.
  bool ends_before(const std::string& what) {
    if (options_.stop && options_.stop()) stopped_ = true;
    if (stopped_) return true;
    report_progress(options_.progress,
                    std::min(1.0, static_cast<double>(done_++) / static_cast<double>(left_)), what);
    return false;
  }

  void tell_measured() {
    if (options_.measured) options_.measured([this] { return so_far(); });
  }

  // All victims are loaded, because each cell's outputs are compared with those of the solo run.
  Result<void> run_baselines() {
    DEMARC_TRY(const auto stage, executor_.whole());
    for (std::size_t victim = 0; victim < plan_.victims.size(); ++victim) {
      const Workload& workload = plan_.victims[victim];
      const bool known = has_baseline(victim);
      if (!known && ends_before(fmt::format("{} alone on the whole GPU", workload.name))) return {};
      DEMARC_TRY(auto outputs, solo_outputs(stage->lane(0), workload));
      solo_.push_back(std::move(outputs));
      if (known) continue;
      Baseline baseline;
      baseline.victim = victim;
      std::vector<double> with_gaps;
      DEMARC_CHECK(warm_up(stage->lane(0), plan_.rule));
      DEMARC_CHECK(take_samples(stage->lane(0), plan_.rule, baseline.samples_ns, with_gaps));
      baseline.times = describe(baseline.samples_ns);
      result_.baselines.push_back(std::move(baseline));
      tell_measured();
    }
    return {};
  }

  // Some of the mode's cells are left to measure in this round or a later one.
  [[nodiscard]] bool is_left(std::size_t mode) {
    const auto visits = visit_order(plan_, mode, 0);
    return std::any_of(visits.begin(), visits.end(), [&](const Visit& visit) {
      return is_left(PlannedVisit{mode, visit});
    });
  }

  Result<void> run_modes() {
    auto order = mode_order(plan_);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return executor_.rank(plan_.modes[a]) < executor_.rank(plan_.modes[b]);
    });
    std::string refusals;
    std::size_t missing = 0;
    for (const std::size_t mode : order) {
      if (stopped_) return {};
      Result<void> ran;
      if (is_left(mode)) ran = divide_and_run(mode);
      if (ran) {
        if (auto why = nothing_ran(result_.cells, mode); !why.empty()) {
          ran = missing_capability("{}", why);
        }
      }
      if (ran) continue;
      if (ran.error().kind == ErrorKind::invalid_input) return tl::unexpected(ran.error());
      ModeSummary& summary = result_.modes[mode];
      if (ran.error().kind == ErrorKind::check_failed || has_times(mode)) {
        summary.failure = ran.error().message;
        continue;
      }
      summary.unavailable = ran.error().message;
      refusals += fmt::format("\n  {}: {}", plan_.modes[mode].name(), summary.unavailable);
      ++missing;
    }
    if (missing < plan_.modes.size()) return {};
    return missing_capability("{} can run none of the chosen modes:{}", result_.device.device,
                              refusals);
  }

  Result<void> divide_and_run(std::size_t mode) {
    DEMARC_TRY(const auto stage, executor_.divide(plan_.modes[mode], plan_.parts));
    std::string& account = result_.modes[mode].account;
    // The file of a mode that failed says nothing of its parts.
    if (has_times(mode) && !account.empty() &&
        how_parts_run(account) != how_parts_run(stage->account())) {
      return check_failed("its cells were measured with '{}', and now its parts are '{}'", account,
                          stage->account());
    }
    account = stage->account();
    auto ran = run_mode(mode, *stage);
    if (auto finished = finish_lanes(*stage); !finished) {
      forget_mode(mode);
      if (ran) return finished;
    }
    return ran;
  }

  Result<void> run_mode(std::size_t mode, Stage& stage) {
    for (std::uint32_t round = 0; round < plan_.rounds; ++round) {
      for (const Visit& visit : visit_order(plan_, mode, round)) {
        Cell& cell = cell_of(mode, visit);
        if (!counts(cell) || cell.visits > round) continue;
        const Workload* aggressor = visit.aggressor ? &plan_.aggressors[*visit.aggressor] : nullptr;
        const std::string pair = fmt::format("{} next to {}", plan_.victims[visit.victim].name,
                                             aggressor == nullptr ? "-" : aggressor->name);
        if (ends_before(fmt::format("{}: {}", plan_.modes[mode].name(), pair))) return {};
        auto visited =
            visit_cell(plan_.rule, stage,
                       {&plan_.victims[visit.victim], aggressor, &solo_[visit.victim]}, cell);
        if (!visited) {
          forget_times(cell);  // those of this visit are in doubt
          return tl::unexpected(
              Error{visited.error().kind, fmt::format("{}: {}", pair, visited.error().message)});
        }
        if (counts(cell)) ++cell.visits;
        tell_measured();
      }
    }
    return {};
  }

  static void forget_times(Cell& cell) {
    cell.samples_ns.clear();
    cell.runs_ns.clear();
    cell.visits = 0;
  }

  // What lanes answered that end with an error counts no more.
  void forget_mode(std::size_t mode) {
    for (Cell& cell : result_.cells) {
      if (cell.mode == mode) forget_times(cell);
    }
  }

  [[nodiscard]] bool has_times(std::size_t mode) const {
    return std::any_of(result_.cells.begin(), result_.cells.end(), [mode](const Cell& cell) {
      return cell.mode == mode && !cell.samples_ns.empty();
    });
  }

  // What the study returns if it ends now: a cell that is left was not run.
  [[nodiscard]] StudyResult so_far() const {
    StudyResult result = result_;
    const bool left = std::any_of(result.cells.begin(), result.cells.end(), [&](const Cell& cell) {
      const ModeSummary& mode = result.modes[cell.mode];
      return mode.unavailable.empty() && mode.failure.empty() && counts(cell) &&
             cell.visits < plan_.rounds;
    });
    if (left) name_cells_not_run(result);
    drop_cells(result);
    collect_errors(result);
    summarize(result);
    result.impossible = impossible_figures(result);
    result.recommendation = recommend(result);
    return result;
  }

  const Plan& plan_;
  Executor& executor_;
  const RunOptions& options_;
  StudyResult result_;
  std::vector<Outputs> solo_;  // by victim
  bool stopped_ = false;
  std::size_t done_ = 0;  // measurements
  std::size_t left_ = 0;  // all that the study has to make
};

}  // namespace

Result<StudyResult> run_study(const Plan& plan, Executor& executor, const RunOptions& options) {
  return StudyRunner(plan, executor, options).run();
}

std::vector<std::string> remarks_of(const StudyResult& result) {
  std::vector<std::string> out;
  for (const Cell& cell : result.cells) {
    if (!cell.not_run.empty() && cell.not_run != interrupted_cell) {
      out.push_back(fmt::format("{}: not run: {}", name_of(result.plan, cell), cell.not_run));
    }
    if (cell.visits > 0 && cell.visits < result.plan.rounds) {
      out.push_back(fmt::format("{}: measured in {} of {} rounds", name_of(result.plan, cell),
                                cell.visits, result.plan.rounds));
    }
    for (const std::string& remark : cell.remarks) {
      out.push_back(fmt::format("{}: {}", name_of(result.plan, cell), remark));
    }
  }
  const std::vector<std::string> tables = empty_tables(result);
  out.insert(out.end(), tables.begin(), tables.end());
  return out;
}

Result<StudyResult> forecast_study(const Plan& plan, const Executor& executor) {
  DEMARC_CHECK(check_plan(plan));
  DEMARC_TRY(Forecast seen, forecast(plan, executor));
  if (!seen.missing.empty()) return missing_capability("no forecast: {}", seen.missing);
  return study_of_forecast(plan, executor, std::move(seen));
}

StudyResult study_of_forecast(const Plan& plan, const Executor& executor, Forecast forecast) {
  StudyResult result;
  result.plan = plan;
  result.device = executor.context();
  result.forecast = std::move(forecast);
  result.impossible = impossible_figures(result);
  result.doubt = doubt_of(plan, executor);
  result.recommendation = recommend(plan, result.forecast);
  if (!result.doubt.empty()) result.recommendation += fmt::format(" {}.", result.doubt);
  return result;
}

}  // namespace demarc::study
