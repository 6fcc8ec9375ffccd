// Makes tables of the points of a store, and writes these as CSV, JSON and text.
#include "demarc/sweep/results.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "demarc/base/json.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "demarc/study/statistics.hpp"

namespace demarc::sweep {
namespace {

using OptionalValues = std::vector<std::optional<Value>>;

std::optional<double> number_of(const std::optional<Value>& value) {
  if (!value) return {};
  if (const auto* real = std::get_if<double>(&*value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
  return {};
}

// Points that are put together: which values the other axes have, and every number of each measure.
struct Group {
  std::vector<Value> values;
  std::uint64_t points = 0;
  std::vector<std::vector<double>> samples;  // [measure]
};

std::vector<bool> kept_axes(const Plan& plan, const std::vector<std::string>& without) {
  std::vector<bool> kept;
  for (const std::string& name : plan.axis_names()) {
    kept.push_back(std::find(without.begin(), without.end(), name) == without.end());
  }
  return kept;
}

// For the points that ended well, in the order of the plan.
Result<std::vector<Group>> groups_of(Store& store) {
  const Plan& plan = store.plan();
  const std::vector<bool> kept = kept_axes(plan, plan.aggregate().over);
  std::vector<Group> groups;
  std::map<std::vector<Value>, std::size_t> known;
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    DEMARC_TRY(const auto row, store.row(i));
    if (!row || !row->outcome.done) continue;
    std::vector<Value> values = plan.values(i);
    std::size_t axis = 0;
    values.erase(
        std::remove_if(values.begin(), values.end(), [&](const Value&) { return !kept[axis++]; }),
        values.end());
    const auto [at, fresh] = known.emplace(values, groups.size());
    if (fresh) groups.push_back({std::move(values), 0, {}});
    Group& group = groups[at->second];
    ++group.points;
    group.samples.resize(plan.measures().size());
    for (std::size_t m = 0; m < plan.measures().size(); ++m) {
      if (const auto number = number_of(row->outcome.kept[m])) group.samples[m].push_back(*number);
    }
  }
  return groups;
}

void add_columns(std::vector<std::string>& columns, const std::string& measure,
                 const std::string& statistic) {
  if (statistic == "interval") {
    columns.push_back(measure + "_low");
    columns.push_back(measure + "_high");
  } else {
    columns.push_back(measure + "_" + statistic);
  }
}

void add_values(OptionalValues& row, std::vector<double> samples, const std::string& statistic) {
  if (samples.empty()) {
    row.resize(row.size() + (statistic == "interval" ? 2 : 1));
    return;
  }
  std::sort(samples.begin(), samples.end());
  const study::Distribution all = study::describe(samples);
  if (statistic == "mean") {
    row.emplace_back(all.mean);
  } else if (statistic == "min") {
    row.emplace_back(samples.front());
  } else if (statistic == "max") {
    row.emplace_back(samples.back());
  } else if (statistic == "interval") {
    // One sample has none.
    const bool bounded = samples.size() > 1;
    row.push_back(bounded ? std::optional<Value>(all.mean_interval.low) : std::nullopt);
    row.push_back(bounded ? std::optional<Value>(all.mean_interval.high) : std::nullopt);
  } else {
    row.emplace_back(study::quantile(samples, std::stod(statistic.substr(1)) / 100));
  }
}

// A value of the axis whose best value is asked for, and what was measured with it.
struct Rival {
  Value value;
  study::Distribution of;
};

// The values whose mean may be that of the best: the 95 % interval of the ratio of the two includes
// 1. "unknown" where too few points give no interval.
std::string like_the_best(const Rival& best, const std::vector<Rival>& rivals) {
  std::vector<std::string> alike;
  for (const Rival& rival : rivals) {
    if (&rival == &best) continue;
    if (!(best.of.mean > 0)) return "unknown";
    const study::Estimate more = study::variation_percent(rival.of, best.of);
    if (!std::isfinite(more.low) || !std::isfinite(more.high)) return "unknown";
    if (more.low <= 0 && more.high >= 0) alike.push_back(to_text(rival.value));
  }
  return joined(alike, " ");
}

std::string text_of(const std::optional<Value>& value) {
  return value ? to_text(*value) : "";
}

// Six digits, for people.
std::string short_text_of(const std::optional<Value>& value) {
  if (value && std::holds_alternative<double>(*value)) {
    return fmt::format("{:.6g}", std::get<double>(*value));
  }
  return text_of(value);
}

}  // namespace

Result<ResultTable> all_points(Store& store, bool provenance) {
  const Plan& plan = store.plan();
  ResultTable table;
  table.columns = plan.axis_names();
  for (const Measure& measure : plan.measures()) table.columns.push_back(measure.name);
  table.columns.emplace_back("error");
  if (provenance) {
    for (const char* name : {"seconds", "rank", "exit_code", "revision", "seed", "input"}) {
      table.columns.push_back(std::string("_") + name);
    }
  }
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    DEMARC_TRY(const auto found, store.row(i));
    if (!found) continue;
    OptionalValues& row = table.rows.emplace_back();
    for (Value& value : plan.values(i)) row.emplace_back(std::move(value));
    row.insert(row.end(), found->outcome.kept.begin(), found->outcome.kept.end());
    row.emplace_back(found->outcome.error);
    if (!provenance) continue;
    row.emplace_back(found->outcome.seconds);
    row.emplace_back(std::int64_t{found->outcome.rank});
    row.emplace_back(std::int64_t{found->outcome.exit_code});
    row.emplace_back(found->revision);
    row.emplace_back(found->seed);
    row.emplace_back(found->input);
  }
  return table;
}

Result<ResultTable> summary(Store& store) {
  const Plan& plan = store.plan();
  std::vector<std::string> statistics = plan.aggregate().statistics;
  if (statistics.empty()) statistics = {"mean"};
  ResultTable table;
  const std::vector<bool> kept = kept_axes(plan, plan.aggregate().over);
  const auto names = plan.axis_names();
  for (std::size_t a = 0; a < names.size(); ++a) {
    if (kept[a]) table.columns.push_back(names[a]);
  }
  table.columns.emplace_back("points");
  for (const Measure& measure : plan.measures()) {
    for (const std::string& statistic : statistics) {
      add_columns(table.columns, measure.name, statistic);
    }
  }
  DEMARC_TRY(const auto groups, groups_of(store));
  for (const Group& group : groups) {
    OptionalValues& row = table.rows.emplace_back(group.values.begin(), group.values.end());
    row.emplace_back(static_cast<std::int64_t>(group.points));
    for (const auto& samples : group.samples) {
      for (const std::string& statistic : statistics) add_values(row, samples, statistic);
    }
  }
  return table;
}

Result<ResultTable> best_values(Store& store) {
  const Plan& plan = store.plan();
  ResultTable table;
  if (!plan.aggregate().best) return table;
  const Best& best = *plan.aggregate().best;
  const std::vector<bool> kept = kept_axes(plan, plan.aggregate().over);
  std::size_t chosen = 0;
  const auto names = plan.axis_names();
  for (std::size_t a = 0; a < names.size(); ++a) {
    if (!kept[a]) continue;
    if (names[a] == best.axis) {
      chosen = table.columns.size();
    } else {
      table.columns.push_back(names[a]);
    }
  }
  table.columns.push_back("best_" + best.axis);
  table.columns.push_back(best.measure + "_mean");
  table.columns.emplace_back("not_significantly_worse");
  const auto at_measure = std::find_if(plan.measures().begin(), plan.measures().end(),
                                       [&](const Measure& m) { return m.name == best.measure; }) -
                          plan.measures().begin();
  DEMARC_TRY(const auto groups, groups_of(store));
  std::map<std::vector<Value>, std::size_t> known;
  std::vector<std::pair<std::vector<Value>, std::vector<Rival>>> rivals;  // by the other axes
  for (const Group& group : groups) {
    const auto& samples = group.samples[static_cast<std::size_t>(at_measure)];
    if (samples.empty()) continue;
    std::vector<Value> values = group.values;
    Rival rival{values[chosen], study::describe(samples)};
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(chosen));
    const auto [at, fresh] = known.emplace(values, rivals.size());
    if (fresh) rivals.emplace_back(std::move(values), std::vector<Rival>{});
    rivals[at->second].second.push_back(std::move(rival));
  }
  for (const auto& [values, list] : rivals) {
    OptionalValues& row = table.rows.emplace_back(values.begin(), values.end());
    const Rival& first =
        *std::min_element(list.begin(), list.end(), [&](const Rival& one, const Rival& other) {
          return best.least ? one.of.mean < other.of.mean : one.of.mean > other.of.mean;
        });
    row.emplace_back(first.value);
    row.emplace_back(first.of.mean);
    row.emplace_back(like_the_best(first, list));
  }
  return table;
}

Result<std::vector<std::string>> zero_measures(Store& store) {
  const Plan& plan = store.plan();
  std::vector<std::uint64_t> numbers(plan.measures().size());
  std::vector<bool> other(plan.measures().size());
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    DEMARC_TRY(const auto row, store.row(i));
    if (!row || !row->outcome.done) continue;
    for (std::size_t m = 0; m < numbers.size(); ++m) {
      const auto number = number_of(row->outcome.kept[m]);
      if (!number) continue;
      ++numbers[m];
      if (*number != 0) other[m] = true;
    }
  }
  std::vector<std::string> notes;
  for (std::size_t m = 0; m < numbers.size(); ++m) {
    if (numbers[m] < 2 || other[m]) continue;
    notes.push_back(fmt::format(
        "{} is 0 at all {} points, so it does not depend on these axes, or the command does not do "
        "what {} measures",
        plan.measures()[m].name, numbers[m], plan.measures()[m].pointer));
  }
  return notes;
}

std::string to_csv(const ResultTable& table) {
  const auto field = [](const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
  };
  std::string out = joined(table.columns, ",") + "\n";
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) out += ',';
      out += field(text_of(row[c]));
    }
    out += '\n';
  }
  return out;
}

std::string to_json(const Store& store, const ResultTable& table,
                    const std::vector<std::string>& notes) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      Json& value = object[table.columns[c]];
      if (row[c]) value = std::visit([](const auto& held) { return Json(held); }, *row[c]);
    }
    rows.push_back(std::move(object));
  }
  return json_text(Json{{"schema", "demarc.sweep.export/1"},
                        {"version", version()},
                        {"sweep", own_json(store.plan().text())},
                        {"notes", notes},
                        {"rows", std::move(rows)}},
                   2) +
         "\n";
}

std::string to_table(const ResultTable& table, std::size_t most) {
  const std::size_t shown = std::min(most, table.rows.size());
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    widths.push_back(table.columns[c].size());
    for (std::size_t r = 0; r < shown; ++r) {
      widths[c] = std::max(widths[c], short_text_of(table.rows[r][c]).size());
    }
  }
  std::string out;
  const auto line = [&](const auto& text) {
    std::string made;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      append(made, "{}{:>{}}", c == 0 ? "" : "  ", text(c), widths[c]);
    }
    out += made + "\n";
  };
  line([&](std::size_t c) { return table.columns[c]; });
  for (std::size_t r = 0; r < shown; ++r) {
    line([&](std::size_t c) { return short_text_of(table.rows[r][c]); });
  }
  if (shown < table.rows.size()) append(out, "... and {} more rows\n", table.rows.size() - shown);
  return out;
}

std::string command_of(const Point& point) {
  std::string text = "demarc";
  for (const std::string& argument : point.arguments) {
    const bool plain =
        !argument.empty() && argument.find_first_not_of(
                                 "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-./=:,+%@") == std::string::npos;
    if (plain) {
      text += " " + argument;
      continue;
    }
    text += " '";
    for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

}  // namespace demarc::sweep
