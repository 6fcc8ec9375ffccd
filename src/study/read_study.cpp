// Reads a study that was written as JSON, and compares what decides its times with another's.
#include <algorithm>

#include "demarc/base/version.hpp"
#include "demarc/study/study.hpp"
#include "json_parts.hpp"

namespace demarc::study {
namespace {

// Refuses times of 0 or beyond what a run can take: no statistics can be made of them.
Result<std::vector<double>> samples_of(JsonObject& object, std::string_view key) {
  constexpr double longest_ns = 1e15;
  DEMARC_TRY(const Json* list, object.array(key));
  std::vector<double> samples;
  for (const Json& sample : *list) {
    if (!sample.is_number() || !(sample.get<double>() > 0 && sample.get<double>() <= longest_ns)) {
      return invalid_input("{}.{}: times above 0 and up to {:g} ns were expected, found {}",
                           object.where(), key, longest_ns, json_text(sample));
    }
    samples.push_back(sample.get<double>());
  }
  return samples;
}

Result<std::vector<std::string>> texts_of(JsonObject& object, std::string_view key) {
  DEMARC_TRY(const Json* list, object.array(key));
  std::vector<std::string> texts;
  for (const Json& text : *list) {
    if (!text.is_string()) {
      return invalid_input("{}.{}: texts were expected, found {}", object.where(), key,
                           json_text(text));
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

// Calls `read` with each object of the list.
template <class Read>
Result<void> each_of(JsonObject& object, std::string_view key, const Read& read) {
  DEMARC_TRY(const Json* list, object.array(key));
  for (std::size_t i = 0; i < list->size(); ++i) {
    DEMARC_TRY(JsonObject item,
               JsonObject::of((*list)[i], fmt::format("{}.{}[{}]", object.where(), key, i)));
    DEMARC_CHECK(read(item));
  }
  return {};
}

Result<std::vector<Workload>> workloads_of(JsonObject& plan, std::string_view key) {
  std::vector<Workload> workloads;
  DEMARC_CHECK(each_of(plan, key, [&](JsonObject& item) -> Result<void> {
    Workload workload;
    DEMARC_TRY(workload.name, item.string("name"));
    DEMARC_TRY(workload.spec, item.string("spec"));
    workloads.push_back(std::move(workload));
    return {};
  }));
  return workloads;
}

// Differs in the summaries alone, which are computed anew from the samples.
constexpr std::string_view earlier_isolate_schema = "demarc.isolate/3";

constexpr std::int64_t max_count = UINT32_MAX;

Result<std::uint32_t> count_of(JsonObject& object, std::string_view key) {
  DEMARC_TRY(const std::int64_t count, object.integer(key, 0, max_count));
  return static_cast<std::uint32_t>(count);
}

Result<Plan> plan_in(JsonObject plan) {
  Plan out;
  DEMARC_TRY(out.parts, count_of(plan, "parts"));
  DEMARC_TRY(const auto modes, texts_of(plan, "modes"));
  for (const std::string& name : modes) {
    DEMARC_TRY(const auto mode, parse_modes(name, plan.where() + ".modes"));
    out.modes.push_back(mode.front());
  }
  DEMARC_TRY(out.victims, workloads_of(plan, "victims"));
  DEMARC_TRY(out.aggressors, workloads_of(plan, "aggressors"));
  DEMARC_TRY(out.rounds, count_of(plan, "rounds"));
  DEMARC_TRY(const Json* seed, plan.any("seed"));
  if (!seed->is_number_unsigned()) {
    return invalid_input("{}.seed: a number from 0 on was expected, found {}", plan.where(),
                         json_text(*seed));
  }
  out.seed = seed->get<std::uint64_t>();
  DEMARC_TRY(JsonObject rule, plan.object("stopping_rule"));
  DEMARC_TRY(out.rule.warm_up, count_of(rule, "warm_up"));
  DEMARC_TRY(out.rule.least, count_of(rule, "least"));
  DEMARC_TRY(out.rule.most, count_of(rule, "most"));
  DEMARC_TRY(out.rule.precision, rule.number("precision"));
  DEMARC_TRY(out.rule.longest_seconds, rule.number("longest_seconds"));
  return out;
}

Result<std::map<std::string, std::string>> table_of(JsonObject& object, std::string_view key) {
  std::map<std::string, std::string> table;
  if (!object.has(key)) return table;  // files of earlier builds lack it
  DEMARC_TRY(const Json* values, object.any(key));
  DEMARC_TRY(JsonObject inner, object.object(key));
  for (const auto& [name, value] : values->items()) {
    DEMARC_TRY(table[name], inner.string(name));
  }
  return table;
}

Result<DeviceContext> device_in(JsonObject& context) {
  DeviceContext out;
  DEMARC_TRY(out.device, context.string("device"));
  DEMARC_TRY(out.name, context.string("device_name"));
  DEMARC_TRY(out.driver, context.string("driver"));
  DEMARC_TRY(out.sms, count_of(context, "sms"));
  DEMARC_TRY(out.measured, context.boolean_or("measured", true));
  DEMARC_TRY(out.model, texts_of(context, "model"));
  DEMARC_TRY(out.settings, table_of(context, "settings"));
  return out;
}

std::string build_text(std::string_view program, std::string_view revision) {
  return fmt::format("{}, revision {}", program, revision);
}

// Where a workload of this name is in the list.
Result<std::size_t> place_of(const std::vector<Workload>& workloads, JsonObject& object,
                             std::string_view key) {
  DEMARC_TRY(const std::string name, object.string(key));
  const auto found = std::find_if(workloads.begin(), workloads.end(),
                                  [&](const Workload& one) { return one.name == name; });
  if (found == workloads.end()) {
    return invalid_input("{}.{}: '{}' is not a workload of the plan", object.where(), key, name);
  }
  return static_cast<std::size_t>(found - workloads.begin());
}

Result<std::size_t> mode_of(const Plan& plan, JsonObject& object) {
  DEMARC_TRY(const std::string name, object.string("mode"));
  for (std::size_t mode = 0; mode < plan.modes.size(); ++mode) {
    if (plan.modes[mode].name() == name) return mode;
  }
  return invalid_input("{}.mode: '{}' is not a mode of the plan", object.where(), name);
}

Result<Cell> cell_in(const Plan& plan, JsonObject& object) {
  Cell cell;
  DEMARC_TRY(cell.mode, mode_of(plan, object));
  DEMARC_TRY(cell.victim, place_of(plan.victims, object, "victim"));
  DEMARC_TRY(const Json* aggressor, object.any("aggressor"));
  if (!aggressor->is_null()) {
    DEMARC_TRY(cell.aggressor, place_of(plan.aggressors, object, "aggressor"));
  }
  DEMARC_TRY(cell.not_run, object.string_or("not_run", ""));
  DEMARC_TRY(cell.error, object.string_or("error", ""));
  if (object.has("remarks")) {
    DEMARC_TRY(cell.remarks, texts_of(object, "remarks"));
  }
  DEMARC_TRY(const std::int64_t visits, object.integer_or("visits", 0, plan.rounds, plan.rounds));
  cell.visits = static_cast<std::uint32_t>(visits);
  DEMARC_TRY(cell.discarded, count_of(object, "discarded"));
  DEMARC_TRY(cell.aggressor_rate, object.number("aggressor_runs_per_second"));
  DEMARC_TRY(cell.samples_ns, samples_of(object, "samples_ns"));
  DEMARC_TRY(cell.runs_ns, samples_of(object, "run_samples_ns"));
  if (cell.samples_ns.empty()) cell.visits = 0;
  if (!counts(cell)) return cell;
  cell.times = describe(cell.samples_ns);
  cell.runs = describe(cell.runs_ns.empty() ? cell.samples_ns : cell.runs_ns);
  return cell;
}

// "driver: 580.1 and 590.2"
void compare(std::vector<std::string>& into, std::string_view what, std::string_view a,
             std::string_view b) {
  const auto shown = [](std::string_view text) { return text.empty() ? "none" : text; };
  if (a != b) into.push_back(fmt::format("{}: {} and {}", what, shown(a), shown(b)));
}

void compare(std::vector<std::string>& into, const std::map<std::string, std::string>& a,
             const std::map<std::string, std::string>& b, std::string_view prefix) {
  std::map<std::string, std::string> names(a);
  names.insert(b.begin(), b.end());
  const auto value = [](const auto& table, const std::string& name) {
    const auto found = table.find(name);
    return found == table.end() ? std::string() : found->second;
  };
  for (const auto& [name, any] : names) {
    compare(into, fmt::format("{}{}", prefix, name), value(a, name), value(b, name));
  }
}

std::string names_of(const std::vector<Workload>& workloads) {
  std::string names;
  for (const Workload& one : workloads) names += (names.empty() ? "" : ",") + one.spec;
  return names;
}

// Specs may have commas in them, so lists that read alike may differ.
void compare(std::vector<std::string>& into, std::string_view what, const std::vector<Workload>& a,
             const std::vector<Workload>& b) {
  if (a == b) return;
  const std::string first = names_of(a);
  const std::string second = names_of(b);
  into.push_back(fmt::format("{}: {} and {}{}", what, first, second,
                             first == second ? ", in other names or places" : ""));
}

std::string names_of(const std::vector<Mode>& modes) {
  std::string names;
  for (const Mode& mode : modes) names += (names.empty() ? "" : ",") + mode.name();
  return names;
}

std::string text_of(const StoppingRule& rule) {
  return fmt::format("warm-up {}, samples {} to {}, precision {}, longest {} s", rule.warm_up,
                     rule.least, rule.most, rule.precision, rule.longest_seconds);
}

}  // namespace

std::string this_build() {
  return build_text(program_name(), revision());
}

Result<StudyResult> read_study(std::string_view text, std::string_view source) {
  DEMARC_TRY(const Json json, parse_json(text, source));
  DEMARC_TRY(JsonObject study, JsonObject::of(json, std::string(source)));
  DEMARC_TRY(const std::string schema, study.string("schema"));
  if (schema != isolate_schema && schema != earlier_isolate_schema) {
    return invalid_input(
        "{}: its schema is '{}'; give a file of `demarc isolate --json=FILE`, whose schema is '{}' "
        "or '{}', or measure a new one",
        source, schema, isolate_schema, earlier_isolate_schema);
  }
  StudyResult out;
  DEMARC_TRY(JsonObject context, study.object("context"));
  DEMARC_TRY(out.device, device_in(context));
  DEMARC_TRY(const std::string program, context.string("program"));
  DEMARC_TRY(const std::string revised, context.string("revision"));
  out.build = build_text(program, revised);
  DEMARC_TRY(JsonObject plan, study.object("plan"));
  DEMARC_TRY(out.plan, plan_in(std::move(plan)));
  DEMARC_TRY(out.contents, table_of(study, "contents"));
  DEMARC_TRY(out.interrupted, study.string_or("interrupted", ""));
  DEMARC_CHECK(each_of(study, "baselines", [&](JsonObject& item) -> Result<void> {
    Baseline baseline;
    DEMARC_TRY(baseline.victim, place_of(out.plan.victims, item, "victim"));
    DEMARC_TRY(baseline.samples_ns, samples_of(item, "samples_ns"));
    if (baseline.samples_ns.empty()) {
      return invalid_input("{}.samples_ns: it is empty; a baseline has a time", item.where());
    }
    if (std::ranges::count(out.baselines, baseline.victim, &Baseline::victim) != 0) {
      return invalid_input("{}: a second baseline of this victim", item.where());
    }
    baseline.times = describe(baseline.samples_ns);
    out.baselines.push_back(std::move(baseline));
    return {};
  }));
  DEMARC_CHECK(each_of(study, "modes", [&](JsonObject& item) -> Result<void> {
    ModeSummary mode;
    DEMARC_TRY(mode.mode, mode_of(out.plan, item));
    DEMARC_TRY(mode.account, item.string_or("account", ""));
    DEMARC_TRY(mode.unavailable, item.string_or("unavailable", ""));
    DEMARC_TRY(mode.failure, item.string_or("failure", ""));
    out.modes.push_back(std::move(mode));
    return {};
  }));
  DEMARC_CHECK(each_of(study, "cells", [&](JsonObject& item) -> Result<void> {
    DEMARC_TRY(auto cell, cell_in(out.plan, item));
    const auto is_same = [&](const Cell& one) {
      return one.mode == cell.mode && one.victim == cell.victim && one.aggressor == cell.aggressor;
    };
    if (std::ranges::any_of(out.cells, is_same)) {
      return invalid_input("{}: a second cell of this mode, victim and aggressor", item.where());
    }
    out.cells.push_back(std::move(cell));
    return {};
  }));
  return out;
}

std::vector<std::string> differences(const StudyResult& a, const StudyResult& b) {
  std::vector<std::string> out;
  compare(out, "build", a.build, b.build);
  compare(out, "device", a.device.device, b.device.device);
  compare(out, "card", a.device.name, b.device.name);
  compare(out, "driver", a.device.driver, b.device.driver);
  compare(out, "SMs", std::to_string(a.device.sms), std::to_string(b.device.sms));
  compare(out, a.device.settings, b.device.settings, "");
  if (a.device.model != b.device.model) out.emplace_back("the parameters of the simulated card");
  compare(out, "parts", std::to_string(a.plan.parts), std::to_string(b.plan.parts));
  compare(out, "modes", names_of(a.plan.modes), names_of(b.plan.modes));
  compare(out, "victims", a.plan.victims, b.plan.victims);
  compare(out, "aggressors", a.plan.aggressors, b.plan.aggressors);
  compare(out, "rounds", std::to_string(a.plan.rounds), std::to_string(b.plan.rounds));
  compare(out, "seed", std::to_string(a.plan.seed), std::to_string(b.plan.seed));
  compare(out, "stopping rule", text_of(a.plan.rule), text_of(b.plan.rule));
  compare(out, a.contents, b.contents, "contents of ");
  return out;
}

Result<void> check_same_study(const StudyResult& earlier, std::string_view source, const Plan& plan,
                              const Executor& executor) {
  StudyResult now;
  now.plan = plan;
  now.build = this_build();
  now.device = executor.context();
  now.contents = contents_of(plan);
  const auto differing = differences(earlier, now);
  if (differing.empty()) return {};
  return invalid_input(
      "{}: its cells were measured differently (there and now), so they are not mixed with those "
      "of "
      "this run: {}. Give the options of that run, or leave out --resume and measure all cells "
      "anew",
      source, fmt::join(differing, "; "));
}

}  // namespace demarc::study
