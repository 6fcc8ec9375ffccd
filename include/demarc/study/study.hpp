// The interference study: who disturbs whom, under which partition.
//
//   T(A, B)      mean kernel time of victim A in part 0 while aggressor B loops in the other parts
//   variation(A) = max over B of (T(A, B) - T(A, -)) / T(A, -), "-" being idle neighbours
// [Fractional GPUs, section VI]. The same is computed for the slow runs, which a mean can hide, and
// for the run as a whole, because a victim of many launches also waits between its kernels. The
// slow runs are judged by p99 if the samples carry one, else by the worst of them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/study/comparison.hpp"
#include "demarc/study/executor.hpp"
#include "demarc/study/forecast.hpp"
#include "demarc/study/plan.hpp"
#include "demarc/study/statistics.hpp"
#include "demarc/study/tail.hpp"

namespace demarc::study {

// One run of T(A, B) under one mode.
struct Cell {
  std::size_t mode = 0;  // index into Plan::modes
  std::size_t victim = 0;
  std::optional<std::size_t> aggressor;
  std::vector<double> samples_ns;  // raw, in the order taken, all rounds
  std::uint32_t visits = 0;        // rounds of the plan in which the cell was measured
  std::uint32_t discarded = 0;     // warm-up launches
  double aggressor_rate = 0;       // finished aggressor runs per second, all lanes; 0 for commands
  std::vector<double> runs_ns;     // the same runs with their gaps (Lane::last_runs), or empty
  std::string not_run;             // why a workload cannot run in its part; empty: both can
  // If not empty, the outputs were wrong or the aggressor was not at work, and the times do not
  // count.
  std::string error;
  std::vector<std::string> remarks;  // of the aggressor's lanes (Lane::remark)
  Distribution times;                // of samples_ns; all zeros if error is set
  Distribution runs;                 // of runs_ns, or of samples_ns if there are none
};

// Whether the cell ran and its times count.
[[nodiscard]] inline bool counts(const Cell& cell) {
  return cell.not_run.empty() && cell.error.empty();
}

struct Baseline {  // victim alone on the whole GPU
  std::size_t victim = 0;
  std::vector<double> samples_ns;
  Distribution times;
};

// One row of the variation table.
struct Variation {
  std::size_t victim = 0;
  Estimate mean_percent;           // of mean time, under the worst aggressor
  std::size_t worst_for_mean = 0;  // aggressor index
  Tail tail;
  Estimate run_percent;  // of the mean run, including the gaps between its launches
  std::size_t worst_for_run = 0;
  Tail run_tail;
  double overhead = 0;  // T(A,-) / (parts x T_baseline): 1 is the time on an ideal share of the GPU
  std::vector<std::size_t> missing;  // aggressors whose cells have no figures
};

struct ModeSummary {
  std::size_t mode = 0;
  std::string account;             // what the stage said of itself
  std::string unavailable;         // not empty: why the machine cannot do this mode
  std::string failure;             // not empty: the mode ended with this error
  std::vector<Variation> victims;  // those with figures beside an aggressor, in plan order
  OverVictims mean;                // of mean_percent
  TailSummary tail;
  OverVictims run;  // of run_percent
  TailSummary run_tail;
};

struct StudyResult {
  Plan plan;
  DeviceContext device;
  std::string build;  // the program that measured, with its revision
  Contents contents;
  Forecast forecast;
  std::vector<Baseline> baselines;  // one per victim
  std::vector<Cell> cells;          // by mode, victim, aggressor (idle first), in plan order
  std::vector<ModeSummary> modes;   // one per mode of the plan
  std::vector<std::string> errors;  // of cells and modes, in words; not empty = exit code 3
  // impossible_figures(). Not empty = exit code 3 where a model answered. A card's clocks may have
  // changed, so there it is a note.
  std::vector<std::string> impossible;
  std::string interrupted;  // not empty: the study was ended early; how many cells it measured
  std::string doubt;        // why the figures may not be those of other workloads; empty: none
  std::optional<Comparison> comparison;  // with an earlier study, if one was asked for
  std::string recommendation;
};

// What cells lack that a study was to measure when it was ended early (Cell::not_run).
inline constexpr std::string_view interrupted_cell = "the study was ended before this cell";

struct RunOptions {
  Progress progress = {};
  // Called after each measurement. `so_far` gives what the study would return if it ended there.
  std::function<void(const std::function<StudyResult()>& so_far)> measured = {};
  // Asked before each measurement. True: the study ends with what was measured.
  std::function<bool()> stop = {};
  // What an earlier run of the plan measured (check_same_study()); only the rest is measured.
  const StudyResult* earlier = nullptr;
};

// Runs the plan. A mode that the machine lacks is noted and left out; it is an error if it lacks
// all of them. A cell whose workloads its parts do not take is left out, too, before anything runs
// if they need more memory than a part has. A wrong output, or a command that is not at work, fails
// its cell. If a check fails in a mode (a worker died, an illegal address), this is an error of
// that mode, which keeps the cells that had run, unless the check casts doubt on them. The study
// goes on after each of these.
[[nodiscard]] Result<StudyResult> run_study(const Plan& plan, Executor& executor,
                                            const RunOptions& options);

// This program, with its version and revision.
[[nodiscard]] std::string this_build();

// Reads what study_json() wrote. `source` names the text in errors. Samples are whole nanoseconds.
// The result has no forecast and no recommendation.
[[nodiscard]] Result<StudyResult> read_study(std::string_view text, std::string_view source);

// In which of the things that decide a time two studies differ, in words: "driver: 580.1 and
// 590.2". Empty: in nothing.
[[nodiscard]] std::vector<std::string> differences(const StudyResult& a, const StudyResult& b);

// That `earlier`, read from `source`, is of this plan on this device and by this build, so that a
// run of the plan can take over its cells. invalid_input names all that differs.
[[nodiscard]] Result<void> check_same_study(const StudyResult& earlier, std::string_view source,
                                            const Plan& plan, const Executor& executor);

// Runs nothing. The result has the forecast and the recommendation, but no modes or cells.
// missing_capability if there is no forecast.
[[nodiscard]] Result<StudyResult> forecast_study(const Plan& plan, const Executor& executor);
// The same of a forecast that is there.
[[nodiscard]] StudyResult study_of_forecast(const Plan& plan, const Executor& executor,
                                            Forecast forecast);

// Fills modes[].victims and the averages and maxima from cells and baselines. Idempotent.
void summarize(StudyResult& result);

// What cannot be right in a summarised result, in words: a victim that is faster next to a
// neighbour by more than 2 % and more than its runs differ, a hit rate that is not between 0 and 1.
[[nodiscard]] std::vector<std::string> impossible_figures(const StudyResult& result);
// check_failed if a model gave figures that cannot be right (StudyResult::impossible).
[[nodiscard]] Result<void> check_possible(const StudyResult& result);
// Modes in which no victim is slowed at all, in words, unless they say why.
[[nodiscard]] std::vector<std::string> empty_tables(const StudyResult& result);

// "Use mask+color: worst slowdown 1.03x (va next to mm), overhead 0.66x ...", from a summarised
// result; then the same of the other modes, StudyResult::doubt, and what the forecast says of the
// worst neighbour and of losing half the L2. If modes with and without colours hold every victim
// and no aggressor presses, those without are preferred.
[[nodiscard]] std::string recommend(const StudyResult& result);

// A mode holds a victim if its worst mean slowdown is below this, per cent. Fractional GPUs (RTAS
// 2019, abstract) names 9 % on average for its colours.
inline constexpr double holds_below = 10;

// The mode that recommend() names first, of those that ran all of their cells; null if none did. It
// need not hold them (holds_below).
[[nodiscard]] const ModeSummary* recommended_mode(const StudyResult& result);

// All Cell::not_run and Cell::remarks, each with its cell: "none: va next to CMD: ...", and
// empty_tables().
[[nodiscard]] std::vector<std::string> remarks_of(const StudyResult& result);

enum class TextDetail {
  results,     // the recommendation, the tables, doubts about them, and the errors
  usual,       // also what the columns mean, the forecast and the notes
  everything,  // also the parameters of the model that answered
};
// The recommendation and the tables, as text for a terminal.
[[nodiscard]] std::string study_text(const StudyResult& result,
                                     TextDetail detail = TextDetail::usual);

// CSV (RFC 4180) of the cells that ran: a head, then a row per cell, times in microseconds.
[[nodiscard]] std::string study_csv(const StudyResult& result);

// JSON, schema "demarc.isolate/4": context, plan, raw samples, summaries. A p99, or an end of an
// interval, that the samples do not carry is null.
[[nodiscard]] std::string study_json(const StudyResult& result, const std::string& command);

}  // namespace demarc::study
