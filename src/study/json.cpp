// Writes a study as JSON.
#include <cmath>

#include "demarc/study/study.hpp"
#include "json_parts.hpp"

namespace demarc::study {
namespace {

Json distribution_json(const Distribution& d) {
  return {{"count", d.count},
          {"mean", d.mean},
          {"deviation", d.deviation},
          {"best", d.best},
          {"p50", d.p50},
          {"p99", d.p99 ? Json(*d.p99) : Json(nullptr)},
          {"worst", d.worst},
          {"mean_95", ends_json(d.mean_interval.low, d.mean_interval.high)},
          {"p99_95", ends_json(d.p99_bounds.low, d.p99_bounds.high)}};
}

// Whole nanoseconds: no timer of a GPU resolves less.
Json samples_json(const std::vector<double>& samples) {
  Json list = Json::array();
  for (const double ns : samples) list.push_back(std::llround(ns));
  return list;
}

Json workloads_json(const std::vector<Workload>& workloads) {
  Json list = Json::array();
  for (const Workload& w : workloads) list.push_back({{"name", w.name}, {"spec", w.spec}});
  return list;
}

Json plan_json(const Plan& plan) {
  Json modes = Json::array();
  for (const Mode& mode : plan.modes) modes.push_back(mode.name());
  return {{"parts", plan.parts},
          {"modes", modes},
          {"victims", workloads_json(plan.victims)},
          {"aggressors", workloads_json(plan.aggressors)},
          {"rounds", plan.rounds},
          {"seed", plan.seed},
          {"stopping_rule",
           {{"warm_up", plan.rule.warm_up},
            {"least", plan.rule.least},
            {"most", plan.rule.most},
            {"precision", plan.rule.precision},
            {"longest_seconds", plan.rule.longest_seconds}}}};
}

Json cell_json(const Plan& plan, const Cell& cell) {
  Json out{{"mode", plan.modes[cell.mode].name()}, {"victim", plan.victims[cell.victim].name}};
  out["aggressor"] = cell.aggressor ? Json(plan.aggressors[*cell.aggressor].name) : Json(nullptr);
  if (!cell.not_run.empty()) out["not_run"] = cell.not_run;
  if (!cell.error.empty()) out["error"] = cell.error;
  if (!cell.remarks.empty()) out["remarks"] = cell.remarks;
  out["visits"] = cell.visits;
  out["discarded"] = cell.discarded;
  out["aggressor_runs_per_second"] = cell.aggressor_rate;
  out["times_ns"] = distribution_json(cell.times);
  out["samples_ns"] = samples_json(cell.samples_ns);
  out["run_times_ns"] = distribution_json(cell.runs);
  out["run_samples_ns"] = samples_json(cell.runs_ns);
  return out;
}

Json p99_json(const Plan& plan, const std::optional<P99Row>& row) {
  if (!row) return nullptr;
  return {{"slowdown", estimate_json(slowdown_of(row->percent))},
          {"aggressor", plan.aggressors[row->aggressor].name}};
}

Json worst_json(const Plan& plan, const WorstRow& row) {
  return {{"slowdown", slowdown_of(row.percent)},
          {"runs", row.runs},
          {"aggressor", plan.aggressors[row.aggressor].name}};
}

Json over_json(const OverVictims& over) {
  if (over.victims == 0) return nullptr;
  return {{"victims", over.victims},
          {"average_slowdown", slowdown_of(over.average)},
          {"maximum_slowdown", slowdown_of(over.maximum)}};
}

Json tail_json(const TailSummary& tail) {
  Json worst = over_json(tail.worst);
  if (!worst.is_null()) {
    worst["min_runs"] = tail.least_runs;
    worst["max_runs"] = tail.max_runs;
  }
  return {{"p99", over_json(tail.p99)}, {"worst", std::move(worst)}};
}

Json names_at(const std::vector<Workload>& workloads, const std::vector<std::size_t>& indices) {
  Json names = Json::array();
  for (const std::size_t index : indices) names.push_back(workloads[index].name);
  return names;
}

Json mode_json(const Plan& plan, const ModeSummary& mode) {
  Json out{{"mode", plan.modes[mode.mode].name()}};
  if (!mode.unavailable.empty()) {
    out["unavailable"] = mode.unavailable;
    return out;
  }
  if (!mode.failure.empty()) {
    out["failure"] = mode.failure;
    if (mode.victims.empty()) return out;
  }
  Json rows = Json::array();
  for (const Variation& row : mode.victims) {
    rows.push_back({{"victim", plan.victims[row.victim].name},
                    {"mean_slowdown", estimate_json(slowdown_of(row.mean_percent))},
                    {"worst_for_mean", plan.aggressors[row.worst_for_mean].name},
                    {"p99", p99_json(plan, row.tail.p99)},
                    {"worst", worst_json(plan, row.tail.worst)},
                    {"run_slowdown", estimate_json(slowdown_of(row.run_percent))},
                    {"worst_for_run", plan.aggressors[row.worst_for_run].name},
                    {"run_p99", p99_json(plan, row.run_tail.p99)},
                    {"run_worst", worst_json(plan, row.run_tail.worst)},
                    {"overhead", row.overhead}});
    if (!row.missing.empty()) rows.back()["missing"] = names_at(plan.aggressors, row.missing);
  }
  out["account"] = mode.account;
  out["mean"] = over_json(mode.mean);
  out["tail"] = tail_json(mode.tail);
  out["run"] = over_json(mode.run);
  out["run_tail"] = tail_json(mode.run_tail);
  out["victims"] = std::move(rows);
  return out;
}

Json forecasts_json(const std::vector<WorkloadForecast>& rows) {
  Json list = Json::array();
  for (const WorkloadForecast& row : rows) {
    Json out{{"name", row.name}, {"spec", row.spec}};
    if (!row.missing.empty()) {
      out["missing"] = row.missing;
    } else {
      out["launches"] = row.launches;
      out["kernels"] = row.kernels;
      out["complete"] = row.complete;
      out["half_l2_slowdown"] = row.half_l2_slowdown;
      out["half_memory_slowdown"] = row.half_memory_slowdown;
      out["l2_hit_rate"] = row.l2_hit_rate;
      out["half_l2_hit_rate"] = row.half_l2_hit_rate;
      out["dram_demand_share"] = row.dram_demand_share;
      out["l2_demand_share"] = row.l2_demand_share;
    }
    list.push_back(std::move(out));
  }
  return list;
}

Json forecast_json(const Forecast& forecast) {
  if (!forecast.missing.empty()) return {{"missing", forecast.missing}};
  return {{"device", forecast.device},
          {"victims", forecasts_json(forecast.victims)},
          {"aggressors", forecasts_json(forecast.aggressors)}};
}

Json comparison_json(const Comparison& comparison) {
  Json cells = Json::array();
  for (const CellChange& cell : comparison.cells) {
    cells.push_back({{"mode", cell.mode},
                     {"victim", cell.victim},
                     {"aggressor", cell.aggressor == "-" ? Json(nullptr) : Json(cell.aggressor)},
                     {"before_ns", cell.before_ns},
                     {"now_ns", cell.now_ns},
                     {"ratio", estimate_json(cell.ratio)},
                     {"verdict", to_string(cell.verdict)}});
  }
  return {{"source", comparison.source},
          {"differing", comparison.differing},
          {"cells", std::move(cells)},
          {"only_before", comparison.only_before},
          {"only_now", comparison.only_now}};
}

}  // namespace

std::string study_json(const StudyResult& result, const std::string& command) {
  Json out{{"schema", isolate_schema}};
  out["context"] = context_json(result.device, command);
  out["plan"] = plan_json(result.plan);
  out["contents"] = Json::object();
  for (const auto& [spec, digest] : result.contents) out["contents"][spec] = digest;
  if (!result.doubt.empty()) out["doubt"] = result.doubt;
  if (!result.interrupted.empty()) out["interrupted"] = result.interrupted;
  out["recommendation"] = result.recommendation;
  out["forecast"] = forecast_json(result.forecast);
  out["errors"] = result.errors;
  out["impossible"] = result.impossible;
  out["remarks"] = remarks_of(result);
  for (const char* list : {"modes", "baselines", "cells"}) out[list] = Json::array();
  for (const ModeSummary& mode : result.modes) out["modes"].push_back(mode_json(result.plan, mode));
  for (const Baseline& b : result.baselines) {
    out["baselines"].push_back({{"victim", result.plan.victims[b.victim].name},
                                {"times_ns", distribution_json(b.times)},
                                {"samples_ns", samples_json(b.samples_ns)}});
  }
  for (const Cell& cell : result.cells) out["cells"].push_back(cell_json(result.plan, cell));
  if (result.comparison) out["comparison"] = comparison_json(*result.comparison);
  return json_text(out, 2) + "\n";
}

}  // namespace demarc::study
