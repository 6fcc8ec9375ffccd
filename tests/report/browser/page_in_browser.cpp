// Tests in headless Chromium that pages draw every figure, fetch nothing and say nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "browser.hpp"
#include "demarc/report/page.hpp"
#include "paths.hpp"

namespace demarc::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

HeatMap dense_map(std::uint32_t side) {
  HeatMap map{.title = "Dense", .rows = side, .columns = side};
  for (std::uint32_t r = 0; r < side; ++r)
    for (std::uint32_t c = 0; c < side; ++c)
      map.cells.push_back({r, c, std::sin(r * 0.02) * std::cos(c * 0.03) + 1});
  return map;
}

Page page_with_every_block() {
  Page page("Every block </title><script>boom()</script>", "A page that shows all a page can");
  page.context({.command = "demarc x --y '<z>'", .devices = {{"simulated"}}, .seed = "7"});
  page.heading("Words & figures");
  page.prose(
      "First `code` paragraph </script><script>boom()</script>.\n\nSecond one:\n- a point\n- "
      "another");
  page.key_figures({{"Slowdown", "1.03", "worst of 8 victims", Tone::good},
                    {"Worst", "2.4", "", Tone::bad},
                    {"Runs", "64", ""},
                    {"Seed", "7", ""}});
  page.table(
      {"Rows to sort",
       {{"name"}, {"count", Align::right}},
       {{"b", count_cell(1200)}, {"a", count_cell(30)}, {"c <i>", count_cell(7, Tone::bad)}}});
  page.heading("Maps");
  HeatMap big{.title = "A thousand blocks",
              .caption = "Neighbours share.",
              .row_name = "block i",
              .column_name = "block j",
              .value_name = "accesses",
              .rows = 1000,
              .columns = 1000,
              .cells = {},
              .symmetric = true};
  for (std::uint32_t i = 0; i + 40 < 1000; ++i) {
    big.cells.push_back({i, i + 1, 64});
    big.cells.push_back({i, i + 40, 16});
  }
  page.heat_map(big);
  page.heat_map(dense_map(50));
  page.heat_map({.title = "Small",
                 .row_name = "victim",
                 .column_name = "aggressor",
                 .value_name = "%",
                 .rows = 3,
                 .columns = 4,
                 .cells = {{0, 0, 1.5}, {1, 2, 30}, {2, 3, 140.25}},
                 .row_labels = {"MM", "FWT", "VA"},
                 .column_labels = {"MM", "FWT", "VA", "a long name"},
                 .decimals = 1});
  page.heading("Charts");
  page.chart(
      {.title = "Lines",
       .x = {"size", "KiB", true},
       .y = {"time", "us"},
       .series = {{"measured", SeriesKind::line, {{1, 2, 1.5, 2.5}, {10, 5, 4.0, 7.0}, {100, 9}}},
                  {"predicted", SeriesKind::scatter, {{1, 2.2}, {10, 4.8}, {100, 9.3}}}},
       .lines = {{"limit", 8}, {"L2", 30, true}}});
  page.chart({.title = "Bars",
              .x = {.name = "victim", .categories = {"MM", "FWT", "VA"}},
              .y = {"slowdown", "%"},
              .series = {{"none", SeriesKind::bar, {{0, 130, 110.0, 150.0}, {1, 90}, {2, 60}}},
                         {"colour", SeriesKind::bar, {{0, 7}, {1, 5}, {2, 3}}}}});
  page.chart({.title = "Diagonal",
              .x = {"a"},
              .y = {"b"},
              .series = {{"s", SeriesKind::scatter, {{0.1, 0.2}, {0.5, 0.45}, {0.9, 0.8}}}},
              .diagonal = true});
  Distribution times{
      .title = "Run times", .value = {"time", "us"}, .samples = {{"solo", {}}, {"shared", {}}}};
  for (int i = 0; i < 400; ++i) {
    times.samples[0].values.push_back(10 + std::sin(i) * std::cos(i * 7));
    times.samples[1].values.push_back(12 + 3 * std::sin(i * 3) * std::sin(i * 3));
  }
  page.distribution(times);
  times.view = DistributionView::histogram;
  page.distribution(times);
  page.heading("Structure");
  page.begin_section("A folded part", true);
  page.graph({"Syntax tree",
              "",
              {{"add.s64\n%rd17", "line 31", 0},
               {"cvta.to.global\n%rd3", "", 1},
               {"mul.wide.s32", "", 1},
               {"[param_5]", "", 2},
               {"%tid.x", "", 3}},
              {{0, 1, ""}, {0, 2, ""}, {1, 3, ""}, {2, 4, ""}}});
  page.end_section();
  page.graph({"Control flow",
              "",
              {{"entry", "", 0}, {"loop", "", 1}, {"exit", "", 0}},
              {{0, 1, ""}, {1, 1, ""}, {1, 2, "p"}, {2, 0, ""}}});
  Timeline timeline{"Blocks", "", "cycles", {"SM 0", "SM 1"}, {"victim", "aggressor"}, {}};
  for (std::uint32_t i = 0; i < 60; ++i)
    timeline.intervals.push_back(
        {i % 2, i * 10.0, i * 10.0 + 14, "block " + std::to_string(i), i % 3 == 0});
  page.timeline(timeline);
  page.svg(
      "<svg xmlns='http://www.w3.org/2000/svg' width='80' height='40'><rect width='80' "
      "height='40'/></svg>",
      "A box");
  page.csv("all.csv", "a\n1\n");
  page.link("other.html", "Another page");
  page.runs({.key = "k", .command = "demarc x", .times = times});
  page.code("ld.global.f32 %f11, [%rd17]; // <b>", "PTX");
  return page;
}

std::filesystem::path written(const Page& page, const std::string& name) {
  auto file = test::fresh_folder(name) / "index.html";
  std::ofstream(file, std::ios::binary) << page.html();
  return file;
}

std::filesystem::path written_page() {
  static const std::filesystem::path path = written(page_with_every_block(), "page");
  return path;
}

TEST(PageInBrowser, opens_on_a_desktop_without_console_message_or_request) {
  const auto opened = test::open_page(written_page(), 1280, 900, test::after_drawing());
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-finished=\"yes\""));
  EXPECT_THAT(opened.dom, Not(HasSubstr("class=\"fault\"")));
}

TEST(PageInBrowser, opens_dark_and_narrow_without_console_message_or_sideways_scrolling) {
  const auto opened = test::open_page(
      written_page(), 390, 844,
      test::after_drawing(
          "say('wide', document.documentElement.scrollWidth <= innerWidth ? 'fits' : "
          "document.documentElement.scrollWidth + '>' + innerWidth);"),
      true);
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-wide=\"fits\""));
}

TEST(PageInBrowser, draws_every_figure) {
  const auto opened = test::open_page(
      written_page(), 1280, 900,
      test::after_drawing("say('plots', document.querySelectorAll('.plot').length + '/' + "
                          "document.querySelectorAll('.plot[data-drawn]').length);"
                          "say('heats', [...document.querySelectorAll('.heat canvas')].map((c) => "
                          "c.dataset.cells).join());"
                          "say('graphs', [...document.querySelectorAll('.graph svg')].map((s) => "
                          "s.querySelectorAll('rect').length).join());"));
  EXPECT_THAT(opened.said, HasSubstr("data-plots=\"6/6\""));
  EXPECT_THAT(opened.said, HasSubstr("data-heats=\"3840,2500\""));
  EXPECT_THAT(opened.said, HasSubstr("data-graphs=\"5,3\""));
}

TEST(PageInBrowser, draws_a_map_of_a_million_cells) {
  Page page("Large", "A map as large as a kernel of a thousand blocks has");
  page.heat_map(dense_map(1000));
  const auto opened =
      test::open_page(written(page, "large_page"), 1280, 900,
                      test::after_drawing("say('cells', document.querySelector('.heat "
                                          "canvas').dataset.cells);"));
  EXPECT_THAT(opened.said, HasSubstr("data-cells=\"1000000\""));
}

TEST(PageInBrowser, sorts_a_table_by_the_clicked_column_and_turns_it_round) {
  const auto opened = test::open_page(
      written_page(), 1280, 900,
      test::after_drawing(
          "const firsts = () => [...document.querySelectorAll('tbody td:first-child')].map((d) => "
          "d.textContent).join('|');"
          "const head = document.querySelectorAll('thead button')[1];"
          "head.click(); say('up', firsts()); head.click(); say('down', firsts());"));
  EXPECT_THAT(opened.said, HasSubstr("data-up=\"c &lt;i&gt;|a|b\""));
  EXPECT_THAT(opened.said, HasSubstr("data-down=\"b|a|c &lt;i&gt;\""));
}

TEST(PageInBrowser, zooms_a_heat_map_with_buttons_wheel_and_keys_and_reads_a_cell) {
  const auto opened = test::open_page(
      written_page(), 1280, 900,
      test::after_drawing(
          "const map = document.querySelector('.heat canvas'), tools = "
          "map.closest('figure').querySelectorAll('button');"
          "say('start', map.dataset.zoom); tools[0].click(); say('plus', map.dataset.zoom);"
          "tools[1].click(); say('minus', map.dataset.zoom);"
          "map.focus(); const area = map.getBoundingClientRect();"
          "const at = {clientX: area.left + 200, clientY: area.top + 100, bubbles: true, "
          "cancelable: true};"
          "map.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: -300})); say('wheel', "
          "map.dataset.zoom);"
          "map.dispatchEvent(new KeyboardEvent('keydown', {key: '0'})); say('zero', "
          "map.dataset.zoom);"
          "const dense = document.querySelectorAll('.heat canvas')[1], place = "
          "dense.getBoundingClientRect();"
          "dense.dispatchEvent(new PointerEvent('pointermove', {clientX: place.left + 70, clientY: "
          "place.top + 10}));"
          "say('read', dense.closest('figure').querySelector('.readout').textContent);"));
  EXPECT_THAT(opened.said, HasSubstr("data-start=\"1.000\""));
  EXPECT_THAT(opened.said, HasSubstr("data-plus=\"2.000\""));
  EXPECT_THAT(opened.said, HasSubstr("data-minus=\"1.000\""));
  EXPECT_THAT(opened.said, HasSubstr("data-wheel=\"2.718\""));
  EXPECT_THAT(opened.said, HasSubstr("data-zero=\"1.000\""));
  EXPECT_THAT(opened.said, HasSubstr("data-read=\"row 0, column 0: 1 value\""));
}

TEST(PageInBrowser, keeps_hostile_text_as_text) {
  const auto opened =
      test::open_page(written_page(), 1280, 900,
                      test::after_drawing("say('title', document.title); say('scripts', "
                                          "document.querySelectorAll('script').length);"));
  EXPECT_THAT(
      opened.dom,
      HasSubstr("data-title=\"Every block &lt;/title&gt;&lt;script&gt;boom()&lt;/script&gt;\""));
  EXPECT_THAT(opened.said, HasSubstr("data-scripts=\"8\""));
}

// The checks above can fail: a page that misbehaves is noticed.
TEST(PageInBrowser, a_page_that_throws_or_fetches_is_noticed) {
  const auto opened =
      test::open_page(written_page(), 800, 600,
                      "fetch('http://192.0.2.1/x').catch(() => 0); throw new Error('on purpose');");
  EXPECT_THAT(opened.console_errors, Not(IsEmpty()));
  const auto bare = test::fresh_folder("bare") / "bare.html";
  std::ofstream(bare) << "<html><body><img src='http://192.0.2.1/x.png'></body></html>";
  EXPECT_THAT(test::open_page(bare, 800, 600).requests, Not(IsEmpty()));
}

}  // namespace
}  // namespace demarc::report
