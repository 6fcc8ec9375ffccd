// The interference study: who disturbs whom, under which partition.
//
//   T(A, B)      mean kernel time of victim A in part 0 while aggressor B loops in the other parts
//   variation(A) = max over B of (T(A, B) - T(A, -)) / T(A, -), "-" being idle neighbours
// [Fractional GPUs, section VI]. The same is formed for p99, which a mean can hide, and for the run
// as a whole: a victim of many launches also waits between its kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/study/executor.hpp"
#include "demarc/study/forecast.hpp"
#include "demarc/study/plan.hpp"
#include "demarc/study/statistics.hpp"

namespace demarc::study {

// One run of T(A, B) under one mode.
struct Cell {
  std::size_t mode = 0;  // index into Plan::modes
  std::size_t victim = 0;
  std::optional<std::size_t> aggressor;
  std::vector<double> samples_ns;  // raw, in the order taken, all rounds
  std::uint32_t discarded = 0;     // warm-up launches
  double aggressor_rate = 0;       // finished aggressor runs a second, all lanes; 0 for commands
  std::vector<double> runs_ns;     // the same runs with their gaps (Lane::last_runs), or empty
  std::string error;               // not empty: the outputs were wrong; the times do not count
  Distribution times;              // of samples_ns; all zeros where error is set
  Distribution runs;               // of runs_ns, of samples_ns where there are none
};

struct Baseline {  // victim alone on the whole GPU
  std::size_t victim = 0;
  std::vector<double> samples_ns;
  Distribution times;
};

// One row of the variation table.
struct Variation {
  std::size_t victim = 0;
  Estimate mean_percent;           // of mean time, under the worst aggressor
  Estimate p99_percent;            // of p99
  std::size_t worst_for_mean = 0;  // aggressor index
  std::size_t worst_for_p99 = 0;
  Estimate run_percent;  // of the mean run with the gaps between its launches
  Estimate run_p99_percent;
  std::size_t worst_for_run = 0;
  double normalized_idle = 0;   // T(A,-) / (parts x T_baseline): what the partition itself costs
  double normalized_worst = 0;  // max T(A,B) / (parts x T_baseline)
};

struct ModeSummary {
  std::size_t mode = 0;
  std::string account;             // what the stage said of itself
  std::string unavailable;         // not empty: the machine cannot do this mode, and why
  std::vector<Variation> victims;  // those with all their runs valid, in plan order
  double average_percent = 0;      // of mean_percent over victims
  double maximum_percent = 0;
  double average_p99_percent = 0;
  double maximum_p99_percent = 0;
  double average_run_percent = 0;  // of run_percent
  double maximum_run_percent = 0;
  double average_run_p99_percent = 0;
  double maximum_run_p99_percent = 0;
};

struct StudyResult {
  Plan plan;
  DeviceContext device;
  Forecast forecast;
  std::vector<Baseline> baselines;  // one a victim
  std::vector<Cell> cells;          // by mode, victim, aggressor (idle first), in plan order
  std::vector<ModeSummary> modes;   // one a mode of the plan
  std::vector<std::string> errors;  // every wrong output, in words; not empty = exit code 3
  std::string recommendation;
};

// Runs the plan. A mode the machine lacks is noted and left out; when it lacks all of them, that is
// the error. A wrong output fails its run, not the study.
[[nodiscard]] Result<StudyResult> run_study(const Plan& plan, Executor& executor,
                                            const Progress& progress);

// Nothing run: a result of forecast and recommendation alone, without modes or cells.
// missing_capability where there is no forecast.
[[nodiscard]] Result<StudyResult> forecast_study(const Plan& plan, const Executor& executor);

// Fills modes[].victims and the averages and maxima from cells and baselines. Idempotent.
void summarize(StudyResult& result);

// "colours hold all 8 victims under 3 %; MPS lets VA slow cfd 2.4 times", from a summarised result;
// then what the forecast says of the worst neighbour and of losing half the L2. Where modes with
// and without colours hold every victim and no aggressor presses, the ones without are better.
[[nodiscard]] std::string recommend(const StudyResult& result);

// The variation table as text a person reads on a terminal.
[[nodiscard]] std::string study_text(const StudyResult& result);

// JSON, schema "demarc.isolate" version 1: context, plan, raw samples, summaries.
[[nodiscard]] std::string study_json(const StudyResult& result, const std::string& command);

}  // namespace demarc::study
