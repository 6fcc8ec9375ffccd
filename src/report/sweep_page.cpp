// Makes the page of a sweep: each measure against each axis, and the command of each point.
#include "demarc/report/sweep_page.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "demarc/base/text.hpp"
#include "demarc/report/page.hpp"
#include "demarc/study/statistics.hpp"
#include "demarc/sweep/results.hpp"

namespace demarc::report {
namespace {

using sweep::ResultTable;
using sweep::Value;

constexpr std::size_t max_lines = 8;    // in a chart
constexpr std::size_t max_rows = 2000;  // per table
constexpr std::size_t max_commands = 500;

std::optional<double> number_of(const std::optional<Value>& value) {
  if (!value) return {};
  if (const auto* real = std::get_if<double>(&*value)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*whole);
  return {};
}

Cell cell_of(const std::optional<Value>& value) {
  if (!value) return {};
  const auto number = number_of(value);
  if (!number) return sweep::to_text(*value);
  Cell cell(std::holds_alternative<double>(*value) ? three_digits(*number)
                                                   : sweep::to_text(*value));
  cell.number = number;
  return cell;
}

std::size_t column_of(const ResultTable& table, const std::string& name) {
  return static_cast<std::size_t>(std::find(table.columns.begin(), table.columns.end(), name) -
                                  table.columns.begin());
}

std::set<std::string> values_of(const ResultTable& table, std::size_t column) {
  std::set<std::string> values;
  for (const auto& row : table.rows) values.insert(row[column] ? sweep::to_text(*row[column]) : "");
  return values;
}

// `measure` against `axis`, over all values of the other axes; a line for each value of `split`.
Chart chart_of(const ResultTable& points, const std::string& measure, const std::string& axis,
               const std::string& split) {
  const std::size_t y = column_of(points, measure);
  const std::size_t x = column_of(points, axis);
  const std::size_t line = split.empty() ? points.columns.size() : column_of(points, split);
  Chart chart;
  chart.title = fmt::format("{} by {}", measure, axis);
  chart.x = {.name = axis};
  chart.y = {.name = measure};
  bool numbers = true;
  std::vector<std::string> categories;
  // [line][x] in the order in which they come.
  std::vector<std::string> lines;
  std::map<std::string, std::map<std::string, std::vector<double>>> samples;
  for (const auto& row : points.rows) {
    const auto value = number_of(row[y]);
    if (!value || !row[x]) continue;
    const std::string at = sweep::to_text(*row[x]);
    const std::string of = line < row.size() && row[line] ? sweep::to_text(*row[line]) : "";
    numbers = numbers && number_of(row[x]).has_value();
    if (std::find(categories.begin(), categories.end(), at) == categories.end()) {
      categories.push_back(at);
    }
    if (std::find(lines.begin(), lines.end(), of) == lines.end()) lines.push_back(of);
    samples[of][at].push_back(*value);
  }
  if (!numbers) chart.x.categories = categories;
  bool several = false;
  for (const std::string& of : lines) {
    Series series{of.empty() ? measure : of, numbers ? SeriesKind::line : SeriesKind::bar, {}};
    for (std::size_t c = 0; c < categories.size(); ++c) {
      const auto found = samples[of].find(categories[c]);
      if (found == samples[of].end()) continue;
      const auto all = study::describe(found->second);
      Point point{
          numbers ? std::stod(categories[c]) : static_cast<double>(c), all.mean, {}, {}, {}};
      if (found->second.size() > 1) {
        several = true;
        point.low = all.mean_interval.low;
        point.high = all.mean_interval.high;
      }
      series.points.push_back(std::move(point));
    }
    std::sort(series.points.begin(), series.points.end(),
              [](const Point& a, const Point& b) { return a.x < b.x; });
    chart.series.push_back(std::move(series));
  }
  std::vector<double> all;
  for (const Series& series : chart.series) {
    for (const Point& point : series.points) all.push_back(point.y);
  }
  chart.y.logarithmic = needs_logarithm(std::move(all));
  chart.caption = several ? "Mean over the values of the other axes, with its 95 % interval."
                          : "One point each.";
  return chart;
}

Table table_of(const ResultTable& from) {
  Table table;
  for (std::size_t c = 0; c < from.columns.size(); ++c) {
    const bool right = !from.rows.empty() && number_of(from.rows.front()[c]).has_value();
    table.columns.push_back({from.columns[c], right ? Align::right : Align::left});
  }
  for (std::size_t r = 0; r < std::min(max_rows, from.rows.size()); ++r) {
    auto& row = table.rows.emplace_back();
    for (const auto& value : from.rows[r]) row.push_back(cell_of(value));
  }
  if (from.rows.size() > max_rows) {
    table.caption = fmt::format("The first {} of {} rows; `demarc sweep export` gives all.",
                                max_rows, from.rows.size());
  }
  return table;
}

// The devices and seeds of the points, from their commands.
Result<Context> sweep_context(const sweep::Plan& plan, const std::string& command) {
  Context context{.command = command};
  std::set<std::string> devices;
  std::vector<std::string> seeds;
  const std::uint64_t looked_at = std::min<std::uint64_t>(plan.size(), max_commands);
  for (std::uint64_t i = 0; i < looked_at; ++i) {
    DEMARC_TRY(const sweep::Point point, plan.point(i));
    const auto& words = point.arguments;
    const auto at = std::find(words.begin(), words.end(), "--device");
    if (at != words.end() && at + 1 != words.end()) devices.insert(at[1]);
    if (!point.seed.empty() && std::find(seeds.begin(), seeds.end(), point.seed) == seeds.end())
      seeds.push_back(point.seed);
  }
  for (const std::string& device : devices) context.devices.push_back({device});
  context.seed = joined(seeds, ", ");
  context.more = {{"sweep", plan.source()}};
  if (looked_at < plan.size()) {
    context.more.emplace_back("devices and seeds",
                              fmt::format("of the first {} points", looked_at));
  }
  return context;
}

}  // namespace

Result<std::string> sweep_page(sweep::Store& store, const std::string& command) {
  const sweep::Plan& plan = store.plan();
  DEMARC_TRY(const auto counts, store.counts());
  DEMARC_TRY(const auto summary, sweep::summary(store));
  DEMARC_TRY(const auto best, sweep::best_values(store));
  DEMARC_TRY(const auto points, sweep::all_points(store, false));
  Page page(fmt::format("Sweep of demarc {}", plan.verb()), plan.source());
  page.heading("Result");
  if (const auto& wanted = plan.aggregate().best) {
    page.prose(fmt::format(
        "The {} with the {} mean `{}`, for each setting of the other axes, and those whose mean "
        "does not differ from it significantly (the 95 % interval of their ratio includes 1).",
        wanted->axis, wanted->least ? "least" : "largest", wanted->measure));
  }
  if (!best.rows.empty()) page.table(table_of(best));
  page.key_figures({{"points", grouped(static_cast<std::int64_t>(plan.size()))},
                    {"ended", grouped(static_cast<std::int64_t>(counts.done + counts.failed))},
                    {"failed", grouped(static_cast<std::int64_t>(counts.failed)), "",
                     counts.failed == 0 ? Tone::plain : Tone::bad}});
  page.heading("Each measure against each axis");
  const auto axes = plan.axis_names();
  std::string split = plan.aggregate().best ? plan.aggregate().best->axis : "";
  if (!split.empty() && values_of(points, column_of(points, split)).size() > max_lines) split = "";
  for (const sweep::Measure& measure : plan.measures()) {
    const std::size_t column = column_of(points, measure.name);
    if (std::none_of(points.rows.begin(), points.rows.end(),
                     [&](const auto& row) { return number_of(row[column]).has_value(); })) {
      continue;
    }
    for (const std::string& axis : axes) {
      const bool over = std::find(plan.aggregate().over.begin(), plan.aggregate().over.end(),
                                  axis) != plan.aggregate().over.end();
      if (over || values_of(points, column_of(points, axis)).size() < 2) continue;
      page.chart(chart_of(points, measure.name, axis, axis == split ? "" : split));
    }
  }
  page.csv("points.csv", sweep::to_csv(points));
  page.heading("What the points come to");
  DEMARC_TRY(const auto notes, sweep::zero_measures(store));
  for (const std::string& note : notes) page.prose(fmt::format("Note: {}.", note));
  page.table(table_of(summary));
  Table table;
  for (const std::string& name : points.columns) table.columns.push_back({name});
  table.columns.push_back({"command"});
  for (std::uint64_t i = 0; i < plan.size() && table.rows.size() < max_commands; ++i) {
    DEMARC_TRY(const auto row, store.row(i));
    if (!row) continue;
    auto& cells = table.rows.emplace_back();
    for (const auto& value : points.rows[table.rows.size() - 1]) cells.push_back(cell_of(value));
    DEMARC_TRY(const sweep::Point point, plan.point(i));
    cells.emplace_back(command_of(point));
  }
  const bool all = table.rows.size() == points.rows.size();
  if (!all) {
    table.caption = fmt::format(
        "The first {} of {} points; `demarc sweep export --points` gives the values of all, and "
        "the commands of the others differ from these in their values alone.",
        table.rows.size(), points.rows.size());
  }
  page.begin_section(fmt::format("{}, and the command that runs it alone",
                                 all ? "Every point" : "A point, one of the first"),
                     true);
  page.table(table);
  page.end_section();
  DEMARC_TRY(const Context context, sweep_context(plan, command));
  page.context(context);
  return page.html();
}

}  // namespace demarc::report
