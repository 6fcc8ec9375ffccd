// The page of an interference study.
#include "demarc/report/isolate_page.hpp"

#include <fmt/format.h>

#include "demarc/report/page.hpp"
#include "demarc/study/study.hpp"
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

void add_summary(Page& page, const StudyResult& result) {
  std::vector<KeyFigure> figures;
  for (const ModeSummary* mode : modes_that_ran(result)) {
    std::string note = fmt::format("worst victim; average {:.1f} %", mode->mean.average);
    for (const study::NamedTail& tail : study::named_tails(mode->tail)) {
      note += fmt::format("; {}: at most {:.1f} %", tail.name, tail.percent.maximum);
    }
    figures.push_back({.name = mode_name(result, *mode),
                       .value = fmt::format("{:.1f} %", mode->mean.maximum),
                       .note = std::move(note),
                       .tone = tone_of(mode->mean.maximum)});
  }
  page.key_figures(figures);
  page.prose(result.recommendation);
  for (const std::string& error : result.errors) {
    page.prose(fmt::format("Error, not counted: {}", error));
  }
  if (result.cells.empty()) return;
  page.prose(
      "T(A, B) is the mean kernel time of victim A in one part while aggressor B loops in the "
      "others. The variation of A is the largest (T(A, B) - T(A, idle)) / T(A, idle) over all B.");
  for (const ModeSummary& mode : result.modes) {
    if (mode.unavailable.empty()) continue;
    page.prose(fmt::format("`{}` was not run: {}", mode_name(result, mode), mode.unavailable));
  }
  for (const std::string& remark : study::remarks_of(result)) page.prose("Note: " + remark);
}

report::Cell share_cell(double share) {
  return number_cell(100 * share, 1, share < study::pressing_share ? Tone::plain : Tone::warning);
}

void add_forecast(Page& page, const StudyResult& result) {
  const study::Forecast& forecast = result.forecast;
  if (!forecast.missing.empty()) {
    page.prose(fmt::format("No forecast: {}.", forecast.missing));
    return;
  }
  Table table;
  table.caption = fmt::format(
      "From PTX, for {}: each workload alone on the whole GPU, over and over. Time with half "
      "the L2 over time with the whole; shares of the DRAM's and the L2's bandwidth that it asks "
      "for, per cent; hits in the whole L2 and in half of it, per cent",
      forecast.device);
  table.columns.push_back({"workload", Align::left});
  for (const char* name : {"times", "DRAM", "L2", "hits", "half"}) {
    table.columns.push_back({name, Align::right});
  }
  std::string missing;
  for (const study::WorkloadForecast* row : study::rows_of(forecast)) {
    if (!row->missing.empty()) {
      missing += fmt::format("- No forecast of `{}`: {}\n", row->name, row->missing);
      continue;
    }
    table.rows.push_back(
        {report::Cell(row->name + (row->complete ? "" : " (its beginning)")),
         number_cell(row->half_l2_slowdown, 2,
                     row->half_l2_slowdown > study::noted_slowdown ? Tone::warning : Tone::plain),
         share_cell(row->dram_demand_share), share_cell(row->l2_demand_share),
         number_cell(100 * row->l2_hit_rate, 1), number_cell(100 * row->half_l2_hit_rate, 1)});
  }
  if (!table.rows.empty()) page.table(table);
  if (!missing.empty()) page.prose(missing);
}

void add_variation_tables(Page& page, const StudyResult& result) {
  page.table(mean_variation_table(result));
  page.table(tail_variation_table(result));
  page.prose(fmt::format(
      "Slow runs are judged by p99 where a victim ran at least {} times beside every neighbour, "
      "else by the worst of its runs: as many beside the aggressor as beside idle neighbours.",
      study::p99_least_runs));
}

void add_heat_map(Page& page, const StudyResult& result, const ModeSummary& mode) {
  HeatMap map;
  map.title = fmt::format("Slowdown under {}", mode_name(result, mode));
  map.caption =
      "Mean time beside the aggressor over mean time beside an idle neighbour. All modes "
      "share one colour scale.";
  map.row_name = "victim";
  map.column_name = "aggressor";
  map.value_name = "times";
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
  page.heat_map(map);
}

void add_costs(Page& page, const StudyResult& result) {
  Chart chart;
  chart.title = "What a partition costs";
  chart.caption = fmt::format(
      "Time over {0} x the time alone on the whole GPU: 1 is the fair share of one part of {0}. "
      "Bars: idle neighbours; error bars reach to the worst neighbour.",
      result.plan.parts);
  chart.x.categories = names_of(result.plan.victims);
  chart.y.name = fmt::format("T / ({} T alone)", result.plan.parts);
  for (const ModeSummary* mode : modes_that_ran(result)) {
    Series series{.name = mode_name(result, *mode), .kind = SeriesKind::bar, .points = {}};
    for (const Variation& row : mode->victims) {
      series.points.push_back({.x = static_cast<double>(row.victim),
                               .y = row.normalized_idle,
                               .low = row.normalized_idle,
                               .high = row.normalized_worst});
    }
    chart.series.push_back(std::move(series));
  }
  chart.lines.push_back({.name = "fair share", .value = 1});
  page.chart(chart);
}

void add_distributions(Page& page, const StudyResult& result, const ModeSummary& mode) {
  page.begin_section(fmt::format("Distributions under {}", mode_name(result, mode)), true);
  if (!mode.account.empty()) page.prose(mode.account);
  for (std::size_t victim = 0; victim < result.plan.victims.size(); ++victim) {
    Distribution plot;
    plot.title =
        fmt::format("{} under {}", result.plan.victims[victim].name, mode_name(result, mode));
    plot.value.name = "kernel time";
    plot.value.unit = "us";
    for (const study::Cell& cell : result.cells) {
      if (cell.mode != mode.mode || cell.victim != victim || !cell.error.empty()) continue;
      Sample sample{.name = neighbour_name(result, cell), .values = {}};
      for (const double ns : cell.samples_ns) sample.values.push_back(ns / 1e3);
      plot.samples.push_back(std::move(sample));
    }
    page.distribution(plot);
  }
  page.table(runs_table(result, mode));
  page.end_section();
}

void add_context(Page& page, const StudyResult& result, const std::string& command) {
  Context context;
  context.command = command;
  context.device = fmt::format("{} ({})", result.device.name, result.device.device);
  context.driver = result.device.driver;
  if (!result.cells.empty()) context.seed = std::to_string(result.plan.seed);
  const auto& rule = result.plan.rule;
  context.more = {{"parts", std::to_string(result.plan.parts)}};
  if (result.cells.empty()) {
    page.context(context);
    return;
  }
  context.more.insert(
      context.more.end(),
      {{"rounds", std::to_string(result.plan.rounds)},
       {"samples",
        fmt::format("{} to {} a visit, until the mean is known to {} %, at most {} s; {} "
                    "warm-up launches thrown away",
                    rule.least, rule.most, rule.precision * 100, rule.longest_seconds,
                    rule.warm_up)}});
  for (const std::string& note : result.device.notes) context.more.emplace_back("note", note);
  for (const std::string& model : result.device.model) context.more.emplace_back("model", model);
  page.context(context);
}

}  // namespace

void add_isolate_study(Page& page, const StudyResult& result) {
  page.heading("In short");
  add_summary(page, result);
  page.heading("Forecast");
  add_forecast(page, result);
  if (result.cells.empty()) return;
  page.heading("Variation");
  add_variation_tables(page, result);
  page.heading("Victims and aggressors");
  for (const ModeSummary* mode : modes_that_ran(result)) add_heat_map(page, result, *mode);
  page.heading("What each partition costs");
  add_costs(page, result);
  page.heading("Every run");
  for (const ModeSummary* mode : modes_that_ran(result)) add_distributions(page, result, *mode);
}

std::string isolate_page(const StudyResult& result, const std::string& command) {
  const char* kind = result.cells.empty()     ? ": a forecast, nothing was run"
                     : result.device.measured ? ""
                                              : ": answers of a model, not measurements";
  Page page("Who disturbs whom",
            fmt::format("{} in {} parts{}", result.device.name, result.plan.parts, kind));
  add_context(page, result, command);
  add_isolate_study(page, result);
  return page.html();
}

}  // namespace demarc::report
