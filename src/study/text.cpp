// Writes a study as text for a terminal.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "demarc/base/text.hpp"
#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

// The names of a plan's workloads in tables: a long one, such as a command line, is cut if that
// leaves it different from all others.
class TableNames {
 public:
  explicit TableNames(const Plan& plan) {
    for (const auto* list : {&plan.victims, &plan.aggressors}) {
      for (const Workload& workload : *list) {
        if (workload.name.size() > longest) cut_[beginning_of(workload.name)].insert(workload.name);
      }
    }
    std::erase_if(cut_, [](const auto& names) { return names.second.size() > 1; });
  }
  [[nodiscard]] std::string operator()(const std::string& name) const {
    const std::string beginning = beginning_of(name);
    return name.size() > longest && cut_.contains(beginning) ? beginning : name;
  }
  // "  python3 detect.py ... is python3 detect.py --model x\n"
  [[nodiscard]] std::string legend() const {
    std::string out;
    for (const auto& [beginning, names] : cut_) {
      append(out, "  {} is {}\n", beginning, *names.begin());
    }
    return out;
  }

 private:
  static constexpr std::size_t longest = 24;
  static std::string beginning_of(const std::string& name) {
    std::size_t end = std::min(name.size(), longest - 3);
    // A character of several bytes is kept whole.
    while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U)
      --end;
    return name.substr(0, end) + "...";
  }
  std::map<std::string, std::set<std::string>> cut_;  // whole names by their beginning
};

// "1.01x on average and 1.02x at most"
std::string average_and_maximum(const OverVictims& over) {
  return fmt::format("{} on average and {} at most", slowdown_text(over.average),
                     slowdown_text(over.maximum));
}

// "1.01x on average and 1.02x at most; worst of 40 runs 1.01x on average and 1.05x at most"
std::string averages(const OverVictims& mean, const TailSummary& tail) {
  std::string out = average_and_maximum(mean);
  for (const NamedTail& one : named_tails(tail)) {
    out += fmt::format("; {} {}", one.name, average_and_maximum(one.percent));
  }
  return out;
}

// Which columns a mode's table needs: none that says what another says.
struct Columns {
  std::string slow;           // what slow runs are judged by, where it is the same for all
  bool slow_next_to = false;  // another aggressor than that of the mean
  bool runs = false;          // whole runs take longer than their kernels
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
    columns.slow_next_to |= judged_by(row.tail).aggressor != row.worst_for_mean;
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
                                "slowdown", " next to", "slowest");
  if (columns.slow.empty()) out += fmt::format("{:<14} ", " which");
  if (columns.slow_next_to) out += fmt::format("{:<12} ", " next to");
  if (columns.runs) out += fmt::format("{:>8} {:<12} {:>8} ", "run", " next to", "slowest");
  return out + fmt::format("{:>8}\n", "overhead");
}

std::string row_text(const StudyResult& result, const ModeSummary& mode, const Columns& columns,
                     const Variation& row) {
  const Plan& plan = result.plan;
  const TableNames name(plan);
  const TailFigure slow = judged_by(row.tail);
  std::string out =
      fmt::format("  {:<12} {:>9.1f} {:>8}  {:<11} {:>8} ", name(plan.victims[row.victim].name),
                  idle_us(result, mode, row), slowdown_text(row.mean_percent.value),
                  name(plan.aggressors[row.worst_for_mean].name), slowdown_text(slow.percent));
  if (columns.slow.empty()) out += fmt::format(" {:<13} ", slow.name);
  if (columns.slow_next_to)
    out += fmt::format(" {:<11} ", name(plan.aggressors[slow.aggressor].name));
  if (columns.runs) {
    out += fmt::format("{:>8}  {:<11} {:>8} ", slowdown_text(row.run_percent.value),
                       name(plan.aggressors[row.worst_for_run].name),
                       slowdown_text(judged_by(row.run_tail).percent));
  }
  return out + fmt::format("{:>7.2f}x\n", row.overhead);
}

// The notes and errors at the end say why.
std::string missing_text(const Plan& plan, const Variation& row) {
  if (row.missing.empty()) return "";
  std::string names;
  for (const std::size_t aggressor : row.missing) {
    append(names, "{}{}", names.empty() ? "" : ", ", plan.aggressors[aggressor].name);
  }
  return fmt::format("    without figures next to {}\n", names);
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
    names.push_back(fmt::format("{} next to {}", plan.victims[victim].name,
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
    out += fmt::format("  slowdown of {} victims: {}\n", mode.victims.size(),
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
  std::string on_commands = words_on_commands(result.plan);
  if (!on_commands.empty()) on_commands += "\n";
  std::string out =
      "\nColumns:\n"
      "  idle us   mean time of the victim while the other parts are idle\n"
      "  slowdown  mean time next to the aggressor that slows it most, over idle us (1.00x: not "
      "slowed)\n";
  out += fmt::format("  slowest   the same for the slowest runs ({})\n",
                     slow.empty() ? "p99, or the worst of so many" : slow);
  if (runs) out += "  run       the same for whole runs, with the gaps between launches\n";
  return out +
         fmt::format(
             "  overhead  idle us over the time of an ideal share, which is {} times the time "
             "alone on the whole GPU (1.00x: nothing is lost)\n",
             result.plan.parts) +
         on_commands;
}

// The names that the tables cut; nothing if there are no tables.
std::string cut_names_of(const StudyResult& result) {
  const bool ran = std::any_of(result.modes.begin(), result.modes.end(),
                               [](const ModeSummary& mode) { return !mode.victims.empty(); });
  const std::string names = ran ? TableNames(result.plan).legend() : "";
  return names.empty() ? "" : "\nNames that the tables cut:\n" + names;
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
  out += cut_names_of(result);
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
