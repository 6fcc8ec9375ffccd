// Writes a study as text for a terminal.
#include <optional>

#include "demarc/base/text.hpp"
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

// Which columns a mode's table needs: none that says what another says.
struct Columns {
  std::string slow;          // what slow runs are judged by, where it is the same for all
  bool slow_beside = false;  // another aggressor than that of the mean
  bool runs = false;         // whole runs take longer than their kernels
};

bool runs_differ(const Variation& row) {
  const TailFigure slow = judged_by(row.tail);
  const TailFigure slow_run = judged_by(row.run_tail);
  return row.run_percent.value != row.mean_percent.value ||
         row.worst_for_run != row.worst_for_mean || slow_run.percent != slow.percent;
}

Columns columns_of(const ModeSummary& mode) {
  Columns columns;
  for (const Variation& row : mode.victims) {
    const std::string name = judged_by(row.tail).name;
    if (&row == &mode.victims.front()) columns.slow = name;
    if (name != columns.slow) columns.slow.clear();
    columns.slow_beside |= judged_by(row.tail).aggressor != row.worst_for_mean;
    columns.runs |= runs_differ(row);
  }
  return columns;
}

double idle_us(const StudyResult& result, const ModeSummary& mode, const Variation& row) {
  for (const Cell& cell : result.cells) {
    if (cell.mode == mode.mode && cell.victim == row.victim && !cell.aggressor)
      return cell.times.mean / 1e3;
  }
  return 0;
}

std::string heading_of(const Columns& columns) {
  std::string out = fmt::format("  {:<12} {:>9} {:>8} {:<12} {:>8} ", "victim", "idle us",
                                "mean +%", " beside", "slow +%");
  if (columns.slow.empty()) out += fmt::format("{:<14} ", " which");
  if (columns.slow_beside) out += fmt::format("{:<12} ", " beside");
  if (columns.runs) out += fmt::format("{:>8} {:<12} {:>8} ", "run +%", " beside", "slow +%");
  return out + fmt::format("{:>6} {:>6}\n", "T/nT0", "worst");
}

std::string row_text(const StudyResult& result, const ModeSummary& mode, const Columns& columns,
                     const Variation& row) {
  const Plan& plan = result.plan;
  const TailFigure slow = judged_by(row.tail);
  std::string out =
      fmt::format("  {:<12} {:>9.1f} {:>8.1f}  {:<11} {:>8.1f} ", plan.victims[row.victim].name,
                  idle_us(result, mode, row), row.mean_percent.value,
                  plan.aggressors[row.worst_for_mean].name, slow.percent);
  if (columns.slow.empty()) out += fmt::format(" {:<13} ", slow.name);
  if (columns.slow_beside) out += fmt::format(" {:<11} ", plan.aggressors[slow.aggressor].name);
  if (columns.runs) {
    out += fmt::format("{:>8.1f}  {:<11} {:>8.1f} ", row.run_percent.value,
                       plan.aggressors[row.worst_for_run].name, judged_by(row.run_tail).percent);
  }
  return out + fmt::format("{:>6.2f} {:>6.2f}\n", row.normalized_idle, row.normalized_worst);
}

// The notes and errors at the end say why.
std::string missing_text(const Plan& plan, const Variation& row) {
  if (row.missing.empty()) return "";
  std::string names;
  for (const std::size_t aggressor : row.missing) {
    append(names, "{}{}", names.empty() ? "" : ", ", plan.aggressors[aggressor].name);
  }
  return fmt::format("    without figures beside {}\n", names);
}

// "  not run, because the study was ended: va next to mm, cfd next to any\n"
std::string not_run_text(const StudyResult& result, std::size_t mode) {
  const Plan& plan = result.plan;
  std::vector<std::string> names;
  for (std::size_t victim = 0; victim < plan.victims.size(); ++victim) {
    std::vector<std::string> neighbours;
    for (const Cell& cell : result.cells) {
      if (cell.mode != mode || cell.victim != victim || cell.not_run != interrupted_cell) continue;
      neighbours.push_back(cell.aggressor ? plan.aggressors[*cell.aggressor].name : "-");
    }
    if (neighbours.empty()) continue;
    const bool all = neighbours.size() == plan.aggressors.size() + 1;
    names.push_back(fmt::format("{} beside {}", plan.victims[victim].name,
                                all ? "any" : fmt::format("{}", fmt::join(neighbours, " and "))));
  }
  if (names.empty()) return "";
  return fmt::format("  not run, because the study was ended before: {}\n", fmt::join(names, ", "));
}

std::string table_of_mode(const StudyResult& result, const ModeSummary& mode) {
  std::string out = fmt::format("\n{}", result.plan.modes[mode.mode].name());
  if (!mode.unavailable.empty()) return out + fmt::format(": not run: {}\n", mode.unavailable);
  if (!mode.failure.empty()) {
    out += fmt::format(": FAILED: {}\n", mode.failure);
    if (mode.victims.empty()) return out;
    out += "  Figures of the cells that had run before:";
  }
  out += mode.account.empty() ? "\n" : fmt::format(" ({})\n", mode.account);
  const Columns columns = columns_of(mode);
  if (!mode.victims.empty()) out += heading_of(columns);
  for (const Variation& row : mode.victims) {
    out += row_text(result, mode, columns, row) + missing_text(result.plan, row);
  }
  out += not_run_text(result, mode.mode);
  if (mode.victims.size() > 1) {  // of one victim the row says it
    out += fmt::format("  variation over {} victims: {}\n", mode.victims.size(),
                       averages(mode.mean, mode.tail));
    if (columns.runs) {
      out += fmt::format("  of whole runs, with the gaps between launches: {}\n",
                         averages(mode.run, mode.run_tail));
    }
  }
  return out;
}

std::string legend_of(const StudyResult& result) {
  bool ran = false;
  bool runs = false;
  std::string slow;
  for (const ModeSummary& mode : result.modes) {
    if (mode.victims.empty()) continue;
    const Columns columns = columns_of(mode);
    if (!ran) slow = columns.slow;
    if (slow != columns.slow) slow.clear();
    ran = true;
    runs |= columns.runs;
  }
  if (!ran) return "";
  std::string out =
      "\nColumns:\n"
      "  idle us  mean time of the victim while the other parts are idle\n"
      "  mean +%  per cent by which the mean time is longer beside the aggressor that slows it "
      "most\n";
  out += fmt::format("  slow +%  the same for the slowest runs ({})\n",
                     slow.empty() ? "p99, or the worst of so many" : slow);
  if (runs) out += "  run +%   the same for whole runs, with the gaps between launches\n";
  return out +
         "  T/nT0    idle time, divided by the number of parts and by the time alone on the whole "
         "GPU\n"
         "  worst    the same for the longest mean time beside an aggressor\n";
}

// As RFC 4180 has it: commands may hold commas and quotes.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv_microseconds(std::optional<double> nanoseconds) {
  return nanoseconds ? fmt::format("{:.3f}", *nanoseconds / 1e3) : "";
}

}  // namespace

std::string study_text(const StudyResult& result, TextDetail detail) {
  std::string out = fmt::format(
      "{} ({}{}), {} parts, seed {}\n", result.device.name, result.device.device,
      result.device.driver.empty() ? "" : fmt::format(", driver {}", result.device.driver),
      result.plan.parts, result.plan.seed);
  if (!result.device.measured && !result.cells.empty())
    out += "A MODEL ANSWERED: these figures are not measurements.\n";
  if (!result.interrupted.empty()) out += fmt::format("NOT COMPLETE: {}.\n", result.interrupted);
  out += fmt::format("\n{}\n", result.recommendation);
  for (const ModeSummary& mode : result.modes) out += table_of_mode(result, mode);
  if (result.comparison) {
    out += comparison_text(*result.comparison, detail == TextDetail::everything);
  }
  if (detail != TextDetail::results) out += legend_of(result);
  if (detail != TextDetail::results || result.cells.empty())
    out += "\n" + forecast_text(result.forecast);
  if (detail != TextDetail::results) {
    for (const std::string& note : result.device.notes) out += fmt::format("note: {}\n", note);
  }
  // What is in doubt of a cell belongs to its figure.
  for (const std::string& remark : remarks_of(result)) out += fmt::format("note: {}\n", remark);
  if (detail == TextDetail::everything) {
    for (const std::string& model : result.device.model) out += fmt::format("\n{}\n", model);
  }
  for (const std::string& figure : result.impossible) {
    out += fmt::format("{}: {}\n", result.device.measured ? "note: in doubt" : "CANNOT BE RIGHT",
                       figure);
  }
  for (const std::string& error : result.errors) out += fmt::format("ERROR: {}\n", error);
  return out;
}

std::string study_csv(const StudyResult& result) {
  const Plan& plan = result.plan;
  std::string out =
      "mode,victim,aggressor,runs,kernels_mean_us,kernels_p50_us,kernels_p99_us,kernels_worst_us,"
      "run_mean_us,run_p99_us,run_worst_us\n";
  for (const Cell& cell : result.cells) {
    if (!counts(cell)) continue;
    out += fmt::format(
        "{},{},{},{}", plan.modes[cell.mode].name(), csv_field(plan.victims[cell.victim].name),
        cell.aggressor ? csv_field(plan.aggressors[*cell.aggressor].name) : "-", cell.times.count);
    for (const std::optional<double> time :
         {std::optional(cell.times.mean), std::optional(cell.times.p50), cell.times.p99,
          std::optional(cell.times.worst), std::optional(cell.runs.mean), cell.runs.p99,
          std::optional(cell.runs.worst)}) {
      out += "," + csv_microseconds(time);
    }
    out += "\n";
  }
  return out;
}

}  // namespace demarc::study
