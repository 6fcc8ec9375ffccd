// Makes the tables of an interference study: which victim is slowed by how much under each mode.
#include "isolate_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace demarc::report {
namespace {

using study::ModeSummary;
using study::StudyResult;
using study::Variation;

report::Cell slowdown_cell(double percent) {
  return digits_cell(slowdown_of(percent), tone_of(percent));
}

report::Cell tail_cell(const study::Tail& tail) {
  const study::TailFigure figure = study::judged_by(tail);
  report::Cell cell = slowdown_cell(figure.percent);
  cell.text += fmt::format(" ({})", figure.name);
  return cell;
}

// One row per victim, one column per mode: what `cell_of` makes of each row of the study.
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
      row.push_back(found == mode->victims.end() ? report::Cell("wrong output") : cell_of(*found));
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
  return out;
}

double slowdown_of(double percent) {
  return 1 + percent / 100;
}

double price_of(const StudyResult& result, const Variation& row) {
  return result.plan.parts * row.normalized_worst;
}

Tone tone_of_price(const StudyResult& result, double price) {
  if (price <= 1.05 * result.plan.parts) return Tone::good;
  return price <= 2 * result.plan.parts ? Tone::warning : Tone::bad;
}

Table mean_slowdown_table(const StudyResult& result) {
  Table table = victims_by_mode(
      result, "Slowdown of the mean time beside the worst aggressor, times the undisturbed time",
      [](const Variation& row) { return slowdown_cell(row.mean_percent.value); });
  for (std::size_t victim = 0; victim < table.rows.size(); ++victim) {
    table.rows[victim].front().meaning = study::meaning_of(result.plan.victims[victim]);
  }
  add_average_and_maximum(
      table, result, "", [](const ModeSummary& mode) -> const auto& { return mode.mean; });
  return table;
}

Table tail_slowdown_table(const StudyResult& result) {
  Table table = victims_by_mode(
      result, "Slowdown of the slow runs beside the worst aggressor, times the undisturbed ones",
      [](const Variation& row) { return tail_cell(row.tail); });
  add_average_and_maximum(
      table, result, " of p99",
      [](const ModeSummary& mode) -> const auto& { return mode.tail.p99; });
  add_average_and_maximum(
      table, result, " of the worst run",
      [](const ModeSummary& mode) -> const auto& { return mode.tail.worst; });
  return table;
}

Table price_table(const StudyResult& result) {
  return victims_by_mode(result,
                         "Price: the worst time in its part, times the time alone on the whole GPU",
                         [&result](const Variation& row) {
                           const double price = price_of(result, row);
                           return digits_cell(price, tone_of_price(result, price));
                         });
}

Table runs_table(const StudyResult& result, const ModeSummary& mode) {
  Table table;
  table.caption = "Every run, microseconds";
  for (const char* name :
       {"victim", "beside", "runs", "mean", "p50", "p99", "worst", "aggressor runs per s"}) {
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
