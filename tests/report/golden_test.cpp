// Whole pages of small made-up results: every number that is shown, and where.
#include "golden.hpp"

#include "demarc/report/page.hpp"
#include "demarc/report/schedule_page.hpp"

namespace demarc::report {
namespace {

TEST(GoldenPage, every_kind_of_block_carries_all_it_was_given) {
  Page page("title", "subtitle");
  page.heading("two");
  page.heading("three", 3);
  page.key_figures(
      {{"a", "1", "note", Tone::good}, {"b", "2", "", Tone::warning}, {"c", "3", "", Tone::bad}});
  page.key_figures({{.name = "d",
                     .value = "4",
                     .meaning = "means",
                     .second = "5",
                     .second_note = "costs",
                     .second_tone = Tone::warning}});
  page.csv("all.csv", "a,b\n");
  page.link("other.html", "the other page");
  page.runs({.key = "k",
             .command = "demarc x",
             .times = {.title = "t", .value = {.name = "v"}, .samples = {{"s", {1, 2, 3}}}}});
  page.begin_section("outer");
  page.begin_section("inner", true);
  Table table{"caption",
              {{"left"}, {"right", Align::right}},
              {{"x", number_cell(1.256, 1, Tone::bad)}, {"short"}}};
  table.rows.push_back({percent_cell(0.125), count_cell(1234567, Tone::good), "beyond"});
  table.rows.back().back().opens = "k";
  table.rows.front().front().opens = "k";
  page.table(table);
  page.end_section();
  page.end_section();
  page.heat_map({.title = "t",
                 .caption = "c",
                 .row_name = "r",
                 .column_name = "k",
                 .value_name = "v",
                 .rows = 2,
                 .columns = 3,
                 .cells = {{0, 1, 4}, {1, 2, 0.1}},
                 .symmetric = true,
                 .logarithmic = true,
                 .low = 0.5,
                 .high = 9,
                 .row_labels = {"x", "y"},
                 .column_labels = {"p", "q", "s"},
                 .opens = "o",
                 .decimals = 1});
  page.heat_maps(
      {.title = "several",
       .caption = "c",
       .maps = {{.title = "one", .rows = 1, .columns = 1, .cells = {{0, 0, 2}}},
                {.title = "two", .rows = 1, .columns = 1, .middle = 1, .empty = "none"}}});
  page.chart({.title = "t",
              .caption = "c",
              .x = {.name = "x", .unit = "s", .logarithmic = true, .low = 1, .high = 9},
              .y = {.name = "y", .categories = {"a", "b"}, .base = 1},
              .series = {{"l", SeriesKind::line, {{1, 2, 0.5, 3, "p"}}},
                         {"s", SeriesKind::scatter, {{3, 4, {}, {}, ""}}, 7},
                         {"b", SeriesKind::bar, {}}},
              .lines = {{"v", 5, true}, {"h", 6}},
              .diagonal = true});
  page.distribution(
      {.title = "box",
       .caption = "c",
       .value = {.name = "v"},
       .samples = {{"s", {5, 1, 2, 3, std::nan(""), 4}}, {"none", {}}, {"one", {7}}}});
  page.distribution({.title = "bars",
                     .value = {.low = 0, .high = 4},
                     .samples = {{"s", {0, 1, 1, 3.99, 4, 9, -1}}},
                     .view = DistributionView::histogram,
                     .bins = 4});
  page.distribution({.title = "equal",
                     .samples = {{"s", {2, 2}}},
                     .view = DistributionView::histogram,
                     .bins = 2});
  page.graph({"g",
              "c",
              {{"a", "d", 1}, {"b", "", 2}},
              {{0, 1, "e"}, {1, 0, ""}, {1, 2, "nowhere"}, {2, 1, "nowhere"}}});
  page.timeline({"t", "c", "ms", {"track"}, {"group"}, {{0, 1, 2.5, "l", 0}}});
  page.svg("<svg/>", "c");
  page.code("int x;", "c");
  page.context({.command = "c",
                .devices = {{"d", "this"}, {"e", "that"}},
                .driver = "r",
                .build = "b",
                .seed = "s",
                .more = {{"m", "n"}, {"empty", ""}}});
  expect_golden("blocks.json", blocks_of(page.html()));
}

TEST(GoldenPage, titles_are_escaped_in_the_markup) {
  EXPECT_NE(Page("a<b>&\"c").html().find("<title>a&lt;b&gt;&amp;&quot;c</title>"),
            std::string::npos);
}

sim::TbMetrics metrics(double scale) {
  sim::TbMetrics m;
  m.antt = 1 + scale;
  m.antt_queue = 1 + 2 * scale;
  m.stp = 3 - scale;
  m.utilization = {40 + 10 * scale};
  m.utilization_full = {45 + 10 * scale};
  return m;
}

// Cells whose values all differ; of some one run is missing, of some both are.
sim::TbStudy made_up(std::span<const sim::TbLine> lines, std::initializer_list<sim::TbMix> mixes,
                     std::initializer_list<std::uint32_t> levels,
                     std::initializer_list<std::uint32_t> sizes) {
  sim::TbStudy study;
  study.options.seeds = 2;
  study.runs = 2;
  study.options.first_seed = 5;
  double n = 0;
  for (const auto& line : lines) {
    for (const auto mix : mixes) {
      for (const auto level : levels) {
        for (const auto sms : sizes) {
          sim::TbCell cell;
          cell.model = line.model;
          cell.policy_rules = line.policy_rules;
          cell.mix = mix;
          cell.policy = line.policy;
          cell.level = level;
          cell.sms = sms;
          n += 0.01;
          cell.runs = {metrics(n), metrics(n + 0.2)};
          if (std::lround(n * 100) % 7 == 0) cell.runs.pop_back();
          if (std::lround(n * 100) % 11 == 0) cell.runs.clear();
          study.cells.push_back(cell);
        }
      }
    }
  }
  return study;
}

TEST(GoldenPage, the_study_of_the_published_policies_shows_every_cell) {
  const auto study =
      made_up(sim::paper_lines, {sim::TbMix::uniform, sim::TbMix::extreme}, {80, 120}, {16});
  expect_golden("schedule_study.json", blocks_of(schedule_study_page(study, "command")));
}

TEST(GoldenPage, the_comparison_of_policies_shows_every_cell) {
  std::vector<sim::TbLine> lines;
  for (const char* policy : {"rr", "bfa", "dfa", "rr-skip"}) {
    lines.push_back({sim::TbModel::corrected, sim::TbModel::corrected, policy, {}});
  }
  const auto study = made_up(lines, {sim::TbMix::uniform, sim::TbMix::multi}, {50, 100}, {16, 64});
  expect_golden("schedule_compare.json", blocks_of(schedule_compare_page(study, "command")));
}

TEST(GoldenPage, a_timeline_is_drawn_to_the_point) {
  sim::DispatchTimeline timeline;
  timeline.title = "two kernels";
  timeline.unit = "tick";
  timeline.sms = 3;
  timeline.kernels = {"A", "B"};
  timeline.spans = {{0, 0, 1, 5, 2}, {0, 1, 2, 4, 1}, {1, 1, 6, 8, 1}, {2, 0, 0, 8, 3}};
  expect_golden("timeline.svg", schedule_svg(timeline));
  expect_golden("timeline.trace.json", json_text(Json::parse(schedule_trace(timeline)), 1) + "\n");
}

}  // namespace
}  // namespace demarc::report
