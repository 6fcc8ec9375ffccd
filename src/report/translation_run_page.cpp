// Makes the pages of demarc translate: a comparison of architectures, and one under each split of
// the work.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "demarc/report/translation_page.hpp"
#include "translation_cells.hpp"

namespace demarc::report {
namespace {

using sim::translation::ApplicationResult;
using sim::translation::Architecture;
using sim::translation::Comparison;
using sim::translation::Summary;

std::string name_of(Architecture architecture) {
  return std::string(to_string(architecture));
}

const char* meaning_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::centralised:
      return "one IOMMU translates for all GPUs";
    case Architecture::distributed:
      return "each GPU asks its own GMMU first, then the IOMMU";
    case Architecture::bypass:
      return "each GPU decides anew whether its GMMU is worth asking";
  }
  return "";
}

// What an application is, where it is one of the program's own.
std::string meaning_of(const ApplicationResult& app) {
  for (const auto& info : sim::translation::application_table())
    if (info.name == app.name) return std::string(info.meaning);
  return "";
}

std::string subtitle_of(const Comparison& c) {
  return fmt::format("{} simulated GPUs: answers of a simulation, not measurements",
                     c.settings.gpus);
}

void add_measure(Page& page, const Comparison& c) {
  const std::string first = name_of(c.architectures.front());
  std::string text =
      c.architectures.size() > 1
          ? fmt::format(
                "Speed-up: the cycles of the {0} architecture over the cycles of another; "
                "1.00 is as fast as {0}, 2.00 is twice as fast.",
                first)
          : std::string("Cycles: the time until the last GPU has done its work.");
  text += "\n";
  for (const Architecture one : c.architectures)
    text += fmt::format("- `{}`: {}\n", name_of(one), meaning_of(one));
  page.prose(text);
}

KeyFigure speedup_card(const Comparison& c, std::size_t i) {
  const auto by_speedup = [i](const ApplicationResult& a, const ApplicationResult& b) {
    return Comparison::speedup(a, i) < Comparison::speedup(b, i);
  };
  const auto [least, most] = std::minmax_element(c.apps.begin(), c.apps.end(), by_speedup);
  KeyFigure card{.name = "Speed-up of " + name_of(c.architectures[i]),
                 .value = times_text(c.mean_speedup(i))};
  if (c.apps.size() > 1) {
    card.note = fmt::format("mean of {} applications; {} {} to {} {}", c.apps.size(), least->name,
                            three_digits(Comparison::speedup(*least, i)), most->name,
                            three_digits(Comparison::speedup(*most, i)));
  } else {
    card.note = c.apps.front().name;
  }
  return card;
}

void add_result(Page& page, const Comparison& c) {
  std::vector<KeyFigure> cards;
  for (std::size_t i = 1; i < c.architectures.size(); ++i) cards.push_back(speedup_card(c, i));
  for (const ApplicationResult& app : c.apps) {
    if (c.architectures.size() > 1) break;
    cards.push_back({.name = app.name,
                     .value = grouped(static_cast<std::int64_t>(app.summaries[0].cycles.raw())),
                     .note = "cycles"});
  }
  page.key_figures(cards);
}

Table run_table(const Comparison& c) {
  Table table;
  table.caption =
      "Every run. TLB hits: requests that a TLB answered or was already fetching, of all line "
      "accesses. GMMU hits: misses of the L2 TLB that the GPU's own GMMU answered. Remote lines: "
      "line accesses that another GPU served";
  table.columns = {{"application"},
                   {"architecture"},
                   {"cycles", Align::right},
                   {"speed-up, times", Align::right},
                   {"TLB hits, %", Align::right},
                   {"GMMU hits, %", Align::right},
                   {"IOMMU accesses", Align::right},
                   {"page walks", Align::right},
                   {"remote lines, %", Align::right},
                   {"pages moved", Align::right}};
  for (const ApplicationResult& app : c.apps) {
    for (std::size_t i = 0; i < c.architectures.size(); ++i) {
      const Summary& s = app.summaries[i];
      Cell name(app.name);
      if (i == 0) name.meaning = meaning_of(app);
      table.rows.push_back({std::move(name), name_of(c.architectures[i]),
                            count_cell(static_cast<std::int64_t>(s.cycles.raw())),
                            i == 0 ? Cell() : digits_cell(Comparison::speedup(app, i)),
                            digits_cell(100 * s.tlb_hit_share()),
                            c.architectures[i] == Architecture::centralised
                                ? Cell()
                                : digits_cell(100 * s.gmmu_hit_share()),
                            count_cell(static_cast<std::int64_t>(s.iommu_accesses)),
                            count_cell(static_cast<std::int64_t>(s.walks())),
                            digits_cell(share_percent(s.remote_lines, s.lines)),
                            count_cell(static_cast<std::int64_t>(s.migrations))});
    }
  }
  return table;
}

void add_charts(Page& page, const Comparison& c) {
  if (c.architectures.size() < 2) return;
  Chart speed{.title = "Speed-up over the " + name_of(c.architectures.front()) + " architecture",
              .x = app_axis(c),
              .y = {.name = "speed-up", .unit = "times", .low = 0.0},
              .lines = {{"equal", 1.0}}};
  Chart walks{.title = "Page walks of all MMUs, over those of the " +
                       name_of(c.architectures.front()) + " architecture",
              .x = app_axis(c),
              .y = {.name = "walks", .unit = "times", .low = 0.0},
              .lines = {{"equal", 1.0}}};
  for (std::size_t i = 1; i < c.architectures.size(); ++i) {
    const std::string name = name_of(c.architectures[i]);
    speed.series.push_back(app_bars(
        c, name, [i](const ApplicationResult& app) { return Comparison::speedup(app, i); }));
    walks.series.push_back(app_bars(c, name, [i](const ApplicationResult& app) {
      return share_percent(app.summaries[i].walks(), app.summaries[0].walks()) / 100;
    }));
  }
  page.chart(speed);
  page.chart(walks);
}

// For one architecture: applications by split, and what the paper says.
HeatMap split_map(const std::vector<Comparison>& splits, std::size_t i) {
  const Comparison& first = splits.front();
  HeatMap map{.title = name_of(first.architectures[i]),
              .row_name = "application",
              .column_name = "split",
              .value_name = "times as fast",
              .rows = static_cast<std::uint32_t>(first.apps.size()),
              .columns = static_cast<std::uint32_t>(splits.size()),
              .high = 6.0,
              .middle = 1.0,
              .row_labels = app_axis(first).categories,
              .decimals = 2};
  for (std::uint32_t column = 0; column < map.columns; ++column) {
    map.column_labels.emplace_back(to_string(splits[column].settings.split));
    for (std::uint32_t row = 0; row < map.rows; ++row) {
      map.cells.push_back({row, column, Comparison::speedup(splits[column].apps[row], i)});
    }
  }
  return map;
}

Table split_table(const std::vector<Comparison>& splits, std::size_t i) {
  const Comparison& first = splits.front();
  Table table;
  table.caption = fmt::format("Speed-up of {} over {} by split of the work, times",
                              name_of(first.architectures[i]), name_of(first.architectures[0]));
  table.columns = {{"application"}};
  for (const Comparison& split : splits)
    table.columns.push_back({std::string(to_string(split.settings.split)), Align::right});
  table.columns.push_back({"paper", Align::right});
  table.columns.push_back({"place"});
  for (std::size_t app = 0; app < first.apps.size(); ++app) {
    auto& row = table.rows.emplace_back();
    row.emplace_back(first.apps[app].name);
    row.front().meaning = meaning_of(first.apps[app]);
    for (const Comparison& split : splits)
      row.push_back(digits_cell(Comparison::speedup(split.apps[app], i)));
    const sim::Published* said = first.architectures[i] == Architecture::distributed
                                     ? sim::translation::published_speedup(first.apps[app].name)
                                     : nullptr;
    row.push_back(said != nullptr ? Cell(std::string(said->words)) : Cell());
    row.push_back(said != nullptr ? Cell(std::string(said->place)) : Cell());
  }
  return table;
}

}  // namespace

std::string translation_page(const Comparison& comparison, const std::string& command) {
  Page page("Address translation on several GPUs", subtitle_of(comparison));
  page.heading("Result");
  add_result(page, comparison);
  add_measure(page, comparison);
  page.heading("Every application");
  page.table(run_table(comparison));
  add_charts(page, comparison);
  page.context(translation_context(comparison.settings, command));
  return page.html();
}

std::string translation_splits_page(const std::vector<Comparison>& splits,
                                    const std::string& command) {
  const Comparison& first = splits.front();
  Page page("Address translation by split of the work", subtitle_of(first));
  page.heading("Result");
  HeatMaps maps{.title = "Speed-up over the " + name_of(first.architectures.front()) +
                         " architecture, by application and split of the work",
                .caption = "All maps share one scale."};
  std::vector<KeyFigure> cards;
  for (std::size_t i = 1; i < first.architectures.size(); ++i) {
    maps.maps.push_back(split_map(splits, i));
    for (const Comparison& split : splits) {
      cards.push_back({.name = fmt::format("{}, {}", name_of(first.architectures[i]),
                                           to_string(split.settings.split)),
                       .value = times_text(split.mean_speedup(i)),
                       .note = "mean speed-up"});
    }
  }
  page.key_figures(cards);
  add_measure(page, first);
  page.heat_maps(maps);
  page.heading("Every application");
  page.prose(fmt::format("`native` is fitted: {}, chosen when the paper's figures were known.",
                         sim::translation::splits_of_applications(splits.back())));
  for (std::size_t i = 1; i < first.architectures.size(); ++i) page.table(split_table(splits, i));
  page.context(translation_context(first.settings, command));
  return page.html();
}

}  // namespace demarc::report
