#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

std::string table_of_mode(const StudyResult& result, const ModeSummary& mode) {
  const Plan& plan = result.plan;
  std::string out = fmt::format("\n{}", plan.modes[mode.mode].name());
  if (!mode.unavailable.empty()) return out + fmt::format(": not run: {}\n", mode.unavailable);
  out += mode.account.empty() ? "\n" : fmt::format(" ({})\n", mode.account);
  out += fmt::format("  {:<12} {:>9} {:>8} {:<11} {:>8} {:<11} {:>8} {:<11} {:>8} {:>6} {:>6}\n",
                     "victim", "idle us", "mean +%", " beside", "p99 +%", " beside", "run +%",
                     " beside", "run p99", "T/nT0", "worst");
  for (const Variation& row : mode.victims) {
    double idle_us = 0;
    for (const Cell& cell : result.cells) {
      if (cell.mode == mode.mode && cell.victim == row.victim && !cell.aggressor) {
        idle_us = cell.times.mean / 1e3;
      }
    }
    out += fmt::format(
        "  {:<12} {:>9.1f} {:>8.1f}  {:<10} {:>8.1f}  {:<10} {:>8.1f}  {:<10} {:>8.1f} {:>6.2f} "
        "{:>6.2f}\n",
        plan.victims[row.victim].name, idle_us, row.mean_percent.value,
        plan.aggressors[row.worst_for_mean].name, row.p99_percent.value,
        plan.aggressors[row.worst_for_p99].name, row.run_percent.value,
        plan.aggressors[row.worst_for_run].name, row.run_p99_percent.value, row.normalized_idle,
        row.normalized_worst);
  }
  out += fmt::format(
      "  variation over {} victim{}: average {:.1f} %, maximum {:.1f} %; p99 average "
      "{:.1f} %, maximum {:.1f} %\n"
      "  of whole runs, gaps between launches with them: average {:.1f} %, maximum {:.1f} %; p99 "
      "average {:.1f} %, maximum {:.1f} %\n",
      mode.victims.size(), mode.victims.size() == 1 ? "" : "s", mode.average_percent,
      mode.maximum_percent, mode.average_p99_percent, mode.maximum_p99_percent,
      mode.average_run_percent, mode.maximum_run_percent, mode.average_run_p99_percent,
      mode.maximum_run_p99_percent);
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
  for (const std::string& error : result.errors) out += fmt::format("WRONG OUTPUT: {}\n", error);
  return out + fmt::format("\n{}\n", result.recommendation);
}

}  // namespace demarc::study
