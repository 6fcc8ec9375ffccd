// A study as text for a terminal.
#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

// "average 0.2 %, maximum 0.8 %; worst of 40 runs average 0.8 %, maximum 4.9 %"
std::string averages(const OverVictims& mean, const TailSummary& tail) {
  std::string out = fmt::format("average {:.1f} %, maximum {:.1f} %", mean.average, mean.maximum);
  for (const NamedTail& one : named_tails(tail)) {
    out += fmt::format("; {} average {:.1f} %, maximum {:.1f} %", one.name, one.percent.average,
                       one.percent.maximum);
  }
  return out;
}

std::string table_of_mode(const StudyResult& result, const ModeSummary& mode) {
  const Plan& plan = result.plan;
  std::string out = fmt::format("\n{}", plan.modes[mode.mode].name());
  if (!mode.unavailable.empty()) return out + fmt::format(": not run: {}\n", mode.unavailable);
  if (!mode.failure.empty()) return out + fmt::format(": FAILED: {}\n", mode.failure);
  out += mode.account.empty() ? "\n" : fmt::format(" ({})\n", mode.account);
  out += fmt::format(
      "  {:<12} {:>9} {:>8} {:<11} {:>8} {:<14} {:<11} {:>8} {:<11} {:>8} {:>6} {:>6}\n", "victim",
      "idle us", "mean +%", " beside", "slow +%", " which", "beside", "run +%", " beside",
      "slow +%", "T/nT0", "worst");
  for (const Variation& row : mode.victims) {
    double idle_us = 0;
    for (const Cell& cell : result.cells) {
      if (cell.mode == mode.mode && cell.victim == row.victim && !cell.aggressor) {
        idle_us = cell.times.mean / 1e3;
      }
    }
    const TailFigure slow = judged_by(row.tail);
    out += fmt::format(
        "  {:<12} {:>9.1f} {:>8.1f}  {:<10} {:>8.1f}  {:<13} {:<11} {:>8.1f}  {:<10} {:>8.1f} "
        "{:>6.2f} {:>6.2f}\n",
        plan.victims[row.victim].name, idle_us, row.mean_percent.value,
        plan.aggressors[row.worst_for_mean].name, slow.percent, slow.name,
        plan.aggressors[slow.aggressor].name, row.run_percent.value,
        plan.aggressors[row.worst_for_run].name, judged_by(row.run_tail).percent,
        row.normalized_idle, row.normalized_worst);
  }
  out += fmt::format("  variation over {} victim{}: {}\n", mode.victims.size(),
                     mode.victims.size() == 1 ? "" : "s", averages(mode.mean, mode.tail));
  out += fmt::format("  of whole runs, gaps between launches with them: {}\n",
                     averages(mode.run, mode.run_tail));
  return out;
}

}  // namespace

std::string study_text(const StudyResult& result) {
  std::string out = fmt::format(
      "{} ({}{}), {} parts, seed {}\n", result.device.name, result.device.device,
      result.device.driver.empty() ? "" : fmt::format(", driver {}", result.device.driver),
      result.plan.parts, result.plan.seed);
  if (!result.device.measured && !result.cells.empty())
    out += "A MODEL ANSWERED: these figures are not measurements.\n";
  for (const std::string& note : result.device.notes) out += fmt::format("note: {}\n", note);
  out += "\n" + forecast_text(result.forecast);
  for (const ModeSummary& mode : result.modes) out += table_of_mode(result, mode);
  for (const std::string& remark : remarks_of(result)) out += fmt::format("note: {}\n", remark);
  for (const std::string& error : result.errors) out += fmt::format("ERROR: {}\n", error);
  return out + fmt::format("\n{}\n", result.recommendation);
}

}  // namespace demarc::study
