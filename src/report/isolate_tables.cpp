// Makes the tables of an interference study: which victim is slowed by how much under each mode.
#include "isolate_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "isolate_runs.hpp"

namespace demarc::report {
namespace {

using study::ModeSummary;
using study::StudyResult;
using study::Variation;

report::Cell slowdown_cell(double percent) {
  return ratio_cell(study::slowdown_of(percent), tone_of(percent));
}

// One row per victim, one column per mode: what `cell_of` makes of each mode's row of the study.
template <class CellOf>
Table victims_by_mode(const StudyResult& result, const char* caption, CellOf cell_of) {
  Table table;
  table.caption = caption;
  table.columns.push_back({"victim", Align::left});
  const auto modes = modes_that_ran(result);
  for (const ModeSummary* mode : modes) {
    table.columns.push_back({mode_name(result, *mode), Align::right});
  }
  for (std::size_t victim = 0; victim < result.plan.victims.size(); ++victim) {
    std::vector<report::Cell> row{report::Cell(result.plan.victims[victim].name)};
    for (const ModeSummary* mode : modes) {
      const auto found = std::find_if(mode->victims.begin(), mode->victims.end(),
                                      [victim](const Variation& v) { return v.victim == victim; });
      row.push_back(found == mode->victims.end() ? report::Cell("wrong output")
                                                 : cell_of(*mode, *found));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Two rows below a table: average and maximum of what `over` gives of each mode, blank where a mode
// has none; no rows where none has any.
template <class Over>
void add_average_and_maximum(Table& table, const StudyResult& result, const char* of, Over over) {
  std::vector<report::Cell> average{report::Cell(fmt::format("average{}", of))};
  std::vector<report::Cell> maximum{report::Cell(fmt::format("maximum{}", of))};
  bool any = false;
  for (const ModeSummary* mode : modes_that_ran(result)) {
    const study::OverVictims& numbers = over(*mode);
    const bool has = numbers.victims > 0;
    average.push_back(has ? slowdown_cell(numbers.average) : report::Cell());
    maximum.push_back(has ? slowdown_cell(numbers.maximum) : report::Cell());
    any = any || has;
  }
  if (!any) return;
  table.rows.push_back(std::move(average));
  table.rows.push_back(std::move(maximum));
}

// Microseconds; of fewer runs than carry a p99, what it is at least with 97.5 % confidence.
report::Cell p99_cell(const study::Distribution& times) {
  if (times.p99) return digits_cell(*times.p99 / 1e3);
  if (!std::isfinite(times.p99_bounds.low)) return {};
  report::Cell cell = digits_cell(times.p99_bounds.low / 1e3);
  cell.text = "at least " + cell.text;
  return cell;
}

}  // namespace

Tone tone_of(double percent) {
  if (percent < 5) return Tone::good;
  return percent < 20 ? Tone::warning : Tone::bad;
}

Tone tone_of_overhead(double overhead) {
  if (overhead <= 1.05) return Tone::good;
  return overhead <= 2 ? Tone::warning : Tone::bad;
}

report::Cell ratio_cell(double ratio, Tone tone) {
  report::Cell cell(fmt::format("{:.2f}x", ratio));
  cell.number = ratio;
  cell.tone = tone;
  return cell;
}

// Two entries per row of the table of modes, the second with memory colours.
std::uint32_t color_of(const study::Mode& mode) {
  constexpr std::array<std::uint32_t, 14> palette{0, 10, 3, 11, 4, 12, 5, 7, 1, 2, 6, 8, 9, 13};
  const std::size_t place = 2 * static_cast<std::size_t>(mode.division) + (mode.color ? 1 : 0);
  return palette[place % palette.size()];
}

std::string mode_name(const StudyResult& result, const ModeSummary& mode) {
  return result.plan.modes[mode.mode].name();
}

std::string neighbour_name(const StudyResult& result, const study::Cell& cell) {
  return cell.aggressor ? result.plan.aggressors[*cell.aggressor].name : "idle";
}

std::vector<const ModeSummary*> modes_that_ran(const StudyResult& result) {
  std::vector<const ModeSummary*> out;
  for (const ModeSummary& mode : result.modes) {
    if (mode.unavailable.empty() && !mode.victims.empty()) out.push_back(&mode);
  }
  if (const auto best = std::find(out.begin(), out.end(), study::recommended_mode(result));
      best != out.end()) {
    std::rotate(out.begin(), best, best + 1);
  }
  return out;
}

Table mean_slowdown_table(const StudyResult& result) {
  Table table = victims_by_mode(
      result, "Slowdown of the mean time next to the worst aggressor. A click shows the runs.",
      [&](const ModeSummary& mode, const Variation& row) {
        report::Cell cell = slowdown_cell(row.mean_percent.value);
        cell.opens = runs_key(result, mode.mode, row.victim, row.worst_for_mean);
        return cell;
      });
  for (std::size_t victim = 0; victim < table.rows.size(); ++victim) {
    table.rows[victim].front().meaning = study::meaning_of(result.plan.victims[victim]);
  }
  add_average_and_maximum(
      table, result, "", [](const ModeSummary& mode) -> const auto& { return mode.mean; });
  return table;
}

Table tail_slowdown_table(const StudyResult& result) {
  Table table = victims_by_mode(
      result, "Slowdown of the slow runs next to the worst aggressor. A click shows the runs.",
      [&](const ModeSummary& mode, const Variation& row) {
        const study::TailFigure figure = study::judged_by(row.tail);
        report::Cell cell = slowdown_cell(figure.percent);
        cell.text += fmt::format(" ({})", figure.name);
        cell.opens = runs_key(result, mode.mode, row.victim, figure.aggressor);
        return cell;
      });
  add_average_and_maximum(
      table, result, " of p99",
      [](const ModeSummary& mode) -> const auto& { return mode.tail.p99; });
  add_average_and_maximum(
      table, result, " of the worst run",
      [](const ModeSummary& mode) -> const auto& { return mode.tail.worst; });
  return table;
}

Table overhead_table(const StudyResult& result) {
  return victims_by_mode(result, "Overhead", [](const ModeSummary&, const Variation& row) {
    return ratio_cell(row.overhead, tone_of_overhead(row.overhead));
  });
}

Table runs_table(const StudyResult& result, const ModeSummary& mode) {
  Table table;
  table.caption = "Every run, microseconds";
  for (const char* name :
       {"victim", "next to", "runs", "mean", "p50", "p99", "worst", "aggressor runs per s"}) {
    table.columns.push_back({name, table.columns.size() < 2 ? Align::left : Align::right});
  }
  for (const study::Cell& cell : result.cells) {
    if (cell.mode != mode.mode) continue;
    const auto& t = cell.times;
    if (!cell.not_run.empty()) continue;
    table.rows.push_back({report::Cell(result.plan.victims[cell.victim].name),
                          report::Cell(neighbour_name(result, cell)),
                          count_cell(static_cast<std::int64_t>(t.count)), digits_cell(t.mean / 1e3),
                          digits_cell(t.p50 / 1e3), p99_cell(t), digits_cell(t.worst / 1e3),
                          digits_cell(cell.aggressor_rate)});
  }
  return table;
}

}  // namespace demarc::report
