// Makes the page of an interference study.
#include "demarc/report/isolate_page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "demarc/report/page.hpp"
#include "demarc/study/study.hpp"
#include "isolate_result.hpp"
#include "isolate_runs.hpp"
#include "isolate_tables.hpp"

namespace demarc::report {
namespace {

using study::ModeSummary;
using study::StudyResult;
using study::Variation;

std::vector<std::string> names_of(const std::vector<study::Workload>& workloads) {
  std::vector<std::string> names;
  names.reserve(workloads.size());
  for (const auto& w : workloads) names.push_back(w.name);
  return names;
}

report::Cell share_cell(double share) {
  return digits_cell(100 * share, share < study::pressing_share ? Tone::plain : Tone::warning);
}

void add_forecast(Page& page, const StudyResult& result) {
  const study::Forecast& forecast = result.forecast;
  if (!forecast.missing.empty()) {
    page.prose(fmt::format("No forecast: {}.", forecast.missing));
    return;
  }
  Table table;
  table.caption = fmt::format(
      "From PTX, for {}: each workload alone, over and over. On half of the SMs: time with half of "
      "the L2 and of the bandwidths over time with all of them. On the whole GPU: share of the "
      "bandwidth of the DRAM and of the L2 that it asks for; hits in the L2 and in half of it",
      forecast.device);
  table.columns.push_back({"workload", Align::left});
  for (const char* name :
       {"slowdown with half the memory", "DRAM, %", "L2, %", "L2 hits, %", "hits in half, %"}) {
    table.columns.push_back({name, Align::right});
  }
  std::string missing;
  for (const study::WorkloadForecast* row : study::rows_of(forecast)) {
    if (!row->missing.empty()) {
      missing += fmt::format("- No forecast of `{}`: {}\n", row->name, row->missing);
      continue;
    }
    report::Cell name(row->name + (row->complete ? "" : " (its beginning)"));
    if (result.cells.empty()) name.meaning = study::meaning_of({row->name, row->spec});
    table.rows.push_back(
        {std::move(name),
         ratio_cell(row->half_memory_slowdown, row->half_memory_slowdown > study::noted_slowdown
                                                   ? Tone::warning
                                                   : Tone::plain),
         share_cell(row->dram_demand_share), share_cell(row->l2_demand_share),
         digits_cell(100 * row->l2_hit_rate), digits_cell(100 * row->half_l2_hit_rate)});
  }
  if (!table.rows.empty()) page.table(table);
  if (!missing.empty()) page.prose(missing);
}

// The aggressors that are no victims too, whose meaning stands in the first column.
std::string aggressor_words(const StudyResult& result) {
  const auto& victims = result.plan.victims;
  std::string text;
  for (const study::Workload& aggressor : result.plan.aggressors) {
    const std::string meaning = study::meaning_of(aggressor);
    if (meaning.empty() || std::find(victims.begin(), victims.end(), aggressor) != victims.end())
      continue;
    text += fmt::format("- `{}`: {}\n", aggressor.name, meaning);
  }
  return text;
}

// Bars of one ratio of each victim, per mode, from 1 on.
template <class RatioOf>
Chart ratio_chart(const StudyResult& result, RatioOf ratio_of) {
  Chart chart;
  chart.x = {.name = "victim", .categories = names_of(result.plan.victims)};
  chart.y.base = 1;
  std::vector<double> all;
  for (const ModeSummary* mode : modes_that_ran(result)) {
    Series series{.name = mode_name(result, *mode),
                  .kind = SeriesKind::bar,
                  .color = color_of(result.plan.modes[mode->mode])};
    for (const Variation& row : mode->victims) {
      series.points.push_back({.x = static_cast<double>(row.victim), .y = ratio_of(row)});
      all.push_back(series.points.back().y);
    }
    chart.series.push_back(std::move(series));
  }
  chart.y.logarithmic = needs_logarithm(std::move(all));
  return chart;
}

Chart slowdown_chart(const StudyResult& result) {
  Chart chart = ratio_chart(
      result, [](const Variation& row) { return study::slowdown_of(row.mean_percent.value); });
  chart.title = "Slowdown next to the worst neighbour";
  chart.y.name = "slowdown";
  return chart;
}

void add_slowdown_tables(Page& page, const StudyResult& result) {
  page.table(mean_slowdown_table(result));
  if (const std::string words = aggressor_words(result); !words.empty()) {
    page.prose("The aggressors that are no victims:\n" + words);
  }
  page.chart(slowdown_chart(result));
  page.begin_section("Slow runs", true);
  page.table(tail_slowdown_table(result));
  page.prose(fmt::format(
      "Slow runs are judged by the p99 if the victim ran at least {} times next to every "
      "neighbour, "
      "and by its worst run otherwise. The worst is taken of as many runs next to the aggressor as "
      "next to idle neighbours.",
      study::p99_least_runs));
  page.end_section();
}

HeatMap heat_map_of(const StudyResult& result, const ModeSummary& mode) {
  HeatMap map;
  map.title = mode_name(result, mode);
  map.row_name = "victim";
  map.column_name = "aggressor";
  map.value_name = "slowdown";
  map.opens = map.title;
  map.rows = static_cast<std::uint32_t>(result.plan.victims.size());
  map.columns = static_cast<std::uint32_t>(result.plan.aggressors.size());
  map.row_labels = names_of(result.plan.victims);
  map.column_labels = names_of(result.plan.aggressors);
  map.low = 1;
  map.high = 4;
  map.decimals = 2;
  double idle = 0;
  for (const study::Cell& cell : result.cells) {  // idle stands before its victim's aggressors
    if (cell.mode != mode.mode) continue;
    if (!cell.aggressor) {
      idle = cell.times.mean;
    } else if (idle > 0 && cell.times.count > 0) {
      map.cells.push_back({static_cast<std::uint32_t>(cell.victim),
                           static_cast<std::uint32_t>(*cell.aggressor), cell.times.mean / idle});
    }
  }
  return map;
}

void add_heat_maps(Page& page, const StudyResult& result) {
  HeatMaps maps{.title = "Slowdown of each victim next to each aggressor, by mode",
                .caption = "All modes share one scale. A click on a cell shows its runs."};
  for (const ModeSummary* mode : modes_that_ran(result)) {
    maps.maps.push_back(heat_map_of(result, *mode));
  }
  page.heat_maps(maps);
}

void add_overheads(Page& page, const StudyResult& result) {
  Chart chart = ratio_chart(result, [](const Variation& row) { return row.overhead; });
  chart.title = "Overhead, next to idle neighbours";
  chart.caption = fmt::format(
      "Time in a part over {} times the time alone on the whole GPU. 1.00x: nothing is lost.",
      result.plan.parts);
  chart.y.name = "overhead";
  page.chart(chart);
  page.begin_section("Overheads as numbers", true);
  page.table(overhead_table(result));
  page.end_section();
}

// A cell that changed is shown, or that has too few runs to tell.
void add_comparison(Page& page, const study::Comparison& comparison) {
  page.heading("Compared with an earlier study");
  std::string words =
      fmt::format("`{}`: {}", comparison.source, study::comparison_words(comparison));
  if (!comparison.differing.empty()) {
    words += fmt::format(" It was measured differently (there and now): {}.",
                         fmt::join(comparison.differing, "; "));
  }
  page.prose(words);
  Table table;
  table.caption = "Cells that changed: mean times in microseconds, and now over before";
  for (const char* name :
       {"mode", "victim", "next to", "verdict", "before", "now", "ratio", "from", "to"}) {
    table.columns.push_back({name, table.columns.size() < 4 ? Align::left : Align::right});
  }
  for (const study::CellChange& cell : comparison.cells) {
    if (cell.verdict == study::Change::unchanged) continue;
    const Tone tone = cell.verdict == study::Change::worse ? Tone::warning : Tone::plain;
    table.rows.push_back(
        {report::Cell(cell.mode), report::Cell(cell.victim), report::Cell(cell.aggressor),
         report::Cell(std::string(to_string(cell.verdict))), digits_cell(cell.before_ns / 1e3),
         digits_cell(cell.now_ns / 1e3), ratio_cell(cell.ratio.value, tone),
         digits_cell(cell.ratio.low), digits_cell(cell.ratio.high)});
  }
  if (!table.rows.empty()) page.table(table);
  const auto list = [&page](std::string_view where, const std::vector<std::string>& names) {
    if (!names.empty()) page.prose(fmt::format("Only in {}: {}.", where, fmt::join(names, ", ")));
  };
  list("the earlier study", comparison.only_before);
  list("this one", comparison.only_now);
}

void add_every_run(Page& page, const StudyResult& result) {
  page.begin_section("Every run", true);
  for (const ModeSummary* mode : modes_that_ran(result)) {
    page.heading(mode_name(result, *mode), 3);
    if (!mode->account.empty()) page.prose(mode->account);
    page.table(runs_table(result, *mode));
  }
  page.end_section();
}

}  // namespace

ContextDevice study_device(const StudyResult& result, const std::string& use) {
  return {fmt::format("{} ({})", result.device.name, result.device.device), use};
}

Context study_context(const StudyResult& result, const std::string& command) {
  Context context;
  context.command = command;
  context.devices = {study_device(result)};
  context.driver = result.device.driver;
  context.more = {{"parts", std::to_string(result.plan.parts)}};
  if (result.cells.empty()) return context;
  context.seed = std::to_string(result.plan.seed);
  const auto& rule = result.plan.rule;
  context.more.insert(
      context.more.end(),
      {{"rounds", std::to_string(result.plan.rounds)},
       {"samples",
        fmt::format("{} to {} per visit, until the mean is known to {} %, at most {} s; {} "
                    "warm-up launches thrown away",
                    rule.least, rule.most, rule.precision * 100, rule.longest_seconds,
                    rule.warm_up)}});
  for (const std::string& note : result.device.notes) context.more.emplace_back("note", note);
  for (const std::string& model : result.device.model) context.more.emplace_back("model", model);
  return context;
}

std::string study_subtitle(const StudyResult& result) {
  const char* kind = result.cells.empty()     ? ": a forecast, nothing was run"
                     : result.device.measured ? ""
                                              : ": answers of a model, not measurements";
  return fmt::format("{} in {} parts{}", result.device.name, result.plan.parts, kind);
}

void add_isolate_study(Page& page, const StudyResult& result, const std::string& command) {
  page.heading("Result");
  if (!result.interrupted.empty()) {
    page.prose(fmt::format("**Not complete**: {}.", result.interrupted));
  }
  add_isolate_result(page, result);
  if (!result.cells.empty()) {
    page.csv("isolate.csv", study::study_csv(result));
    add_runs(page, result, command);
    page.heading("Slowdown");
    add_slowdown_tables(page, result);
    add_heat_maps(page, result);
    page.heading("Overhead");
    add_overheads(page, result);
  }
  if (result.comparison) add_comparison(page, *result.comparison);
  page.begin_section("Forecast", !result.cells.empty());
  add_forecast(page, result);
  page.end_section();
  if (!result.cells.empty()) add_every_run(page, result);
}

std::string isolate_page(const StudyResult& result, const std::string& command) {
  Page page("Interference of co-located kernels", study_subtitle(result));
  add_isolate_study(page, result, command);
  page.context(study_context(result, command));
  return page.html();
}

}  // namespace demarc::report
