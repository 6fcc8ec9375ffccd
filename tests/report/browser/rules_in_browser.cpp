// Tests in headless Chromium of what every page owes its reader: the result first, figures that can
// be read on a desktop, on a phone, after a resize and on paper.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "../made_up.hpp"
#include "browser.hpp"
#include "demarc/report/isolate_page.hpp"
#include "demarc/report/page.hpp"
#include "paths.hpp"

namespace demarc::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::filesystem::path written_rules(const std::string& html, const std::string& name) {
  auto file = test::fresh_folder(name) / "index.html";
  std::ofstream(file, std::ios::binary) << html;
  return file;
}

std::filesystem::path study_file() {
  static const std::filesystem::path path =
      written_rules(isolate_page(made_up_study(), "demarc isolate --x"), "study");
  return path;
}

HeatMap square_map(const char* title) {
  HeatMap map{.title = title, .rows = 300, .columns = 300, .symmetric = true};
  for (std::uint32_t i = 0; i + 1 < 300; ++i) map.cells.push_back({i, i + 1, 4});
  return map;
}

HeatMap small_map(const char* title, double value) {
  return {.title = title,
          .row_name = "victim",
          .column_name = "aggressor",
          .value_name = "times the undisturbed time",
          .rows = 1,
          .columns = 2,
          .cells = {{0, 0, 2}, {0, 1, value}},
          .low = 1,
          .high = 4,
          .row_labels = {"MM"},
          .column_labels = {"FWT", "VA"},
          .decimals = 2};
}

Chart long_legend() {
  Chart chart{.title = "Many lines", .x = {"load", "%"}, .y = {"time", "us"}};
  for (int i = 0; i < 9; ++i) {
    chart.series.push_back({"the series with the long name " + std::to_string(i),
                            SeriesKind::line,
                            {{1, 1.0 + i}, {2, 1234.5 + i}}});
  }
  return chart;
}

Page page_of_rules() {
  Page page("Rules", "What every page owes its reader");
  page.heading("Result");
  page.key_figures({{.name = "`mask`",
                     .value = "1.00x",
                     .note = "promise",
                     .tone = Tone::good,
                     .meaning = "what it is",
                     .second = "7.00x",
                     .second_note = "overhead",
                     .second_tone = Tone::bad},
                    {.name = "`none`", .value = "2.00x", .tone = Tone::warning}});
  page.heading("Maps");
  page.heat_maps({.title = "Several", .maps = {small_map("none", 9), small_map("mask", 1)}});
  page.heat_map({.title = "Ratios",
                 .value_name = "ratio",
                 .rows = 1,
                 .columns = 3,
                 .cells = {{0, 0, 0.5}, {0, 1, 1}, {0, 2, 2}},
                 .middle = 1,
                 .decimals = 2});
  page.heat_map(square_map("First"));
  page.heat_map(square_map("Second"));
  page.heat_map({.title = "Nobody",
                 .rows = 9,
                 .columns = 9,
                 .symmetric = true,
                 .empty = "no two blocks touch the same place."});
  page.heading("Charts");
  page.chart(long_legend());
  page.chart({.title = "Bars",
              .x = {.name = "victim", .categories = {"MM", "FWT"}},
              .y = {"time", "us"},
              .series = {{"none", SeriesKind::bar, {{0, 12.3456, 11.0, 15.0}, {1, 90}}},
                         {"mask", SeriesKind::bar, {{0, 7}, {1, 5}}}}});
  page.distribution({.title = "Boxes", .value = {"time", "us"}, .samples = {{"idle", {1, 2, 3}}}});
  page.heading("Tables");
  Table wide{"Wide", {{"name"}}, {{"a row"}}};
  for (int i = 0; i < 14; ++i) {
    wide.columns.push_back({"column number " + std::to_string(i), Align::right});
    wide.rows[0].push_back(number_cell(i));
  }
  page.table(wide);
  page.table({"Narrow", {{"name"}, {"n"}}, {{"x", "1"}}});
  page.begin_section("Folded", true);
  page.code("x", "y");
  page.end_section();
  page.prose("The last words.");
  page.context({.command = "demarc x", .devices = {{"d"}}});
  return page;
}

std::filesystem::path rules_file() {
  static const std::filesystem::path path = written_rules(page_of_rules().html(), "rules");
  return path;
}

// What is asked of a page. Each script runs in a scope of its own; its names are its own too.
constexpr const char* navigation = R"(
  const list = document.querySelector('.contents'), link = list.querySelector('a');
  list.open = false;
  say('nav-height', document.querySelector('nav').offsetHeight < 48);
  say('nav-links', list.querySelectorAll('a').length);
  say('nav-folded', link.checkVisibility());
  list.open = true;
  say('nav-open', link.checkVisibility());
)";

constexpr const char* numbers = R"(
  const plain = (text) => text.replaceAll('\u202f', ' ');
  const values = [0, 1.23456, 12.3456, 0.00123456, 123.456, 12345.6, 262144, -9.996];
  say('numbers', plain(values.map((n) => demarc.number(n)).join(';')));
  say('places', plain([0.975, 1.005, 1234.5].map(demarc.place).join(';')));
)";

constexpr const char* multiples = R"(
  const box = document.querySelector('.multiples'), figure = box.closest('figure');
  const color = (i) => box.querySelectorAll('td')[i].style.background;
  say('map-same', color(0) === color(2));
  say('map-other', color(1) !== color(3));
  const ends = [...figure.querySelectorAll('.scale .ends span')].map((e) => e.textContent);
  say('map-ends', ends.join().replaceAll('\u202f', ' '));
  say('map-scales', figure.querySelectorAll('.scale').length);
  const [a, b] = [...box.children].map((e) => e.getBoundingClientRect());
  say('map-place', a.top === b.top && b.left > a.right ? 'beside' : b.top >= a.bottom ? 'below' : 'over');
)";

constexpr const char* ratios = R"(
  const figure = document.querySelector('figure[aria-label=Ratios]');
  const [low, middle, high] = [...figure.querySelectorAll('td')].map((e) =>
    e.style.backgroundColor.match(/\d+/g).map(Number));
  say('ratio-low', low[2] > low[0] + 60 ? 'blue' : low.join());
  say('ratio-middle', new Set(middle).size === 1 ? 'grey' : middle.join());
  say('ratio-high', high[0] > high[2] + 60 ? 'red' : high.join());
  say('ratio-ends', [...figure.querySelectorAll('.ends span')].map((e) => e.textContent).join());
)";

constexpr const char* squares = R"(
  const maps = [...document.querySelectorAll('.heat canvas')];
  say('squares', maps.length);
  say('square', maps.every((map) => {
    const [width, height] = map.dataset.plot.split('x').map(Number);
    return width > 200 && width === height;
  }));
  const [a, b] = maps.map((map) => map.closest('figure').getBoundingClientRect());
  say('square-place', a.top === b.top && b.left >= a.right ? 'beside' : b.top >= a.bottom ? 'below' : 'over');
  say('empty', document.querySelector('p.empty').textContent);
)";

constexpr const char* legends = R"(
  const figure = document.querySelector('figure[aria-label="Many lines"]');
  const keys = [...figure.querySelectorAll('.legend button')];
  say('legend-names', keys.map((key) => key.textContent.slice(-1)).join(''));
  say('legend-whole', keys.every((key) =>
    key.scrollWidth <= key.clientWidth + 1 && key.getBoundingClientRect().right <= innerWidth));
  const chart = echarts.getInstanceByDom(figure.querySelector('.plot'));
  const selected = () => chart.getOption().legend[0].selected[keys[3].textContent];
  keys[3].click();
  say('legend-hidden', selected());
  keys[3].click();
  say('legend-shown', selected());
)";

constexpr const char* tooltips = R"(
  const says = (title, entries) => echarts.getInstanceByDom(
    document.querySelector(`figure[aria-label='${title}'] .plot`)).getOption().tooltip[0].formatter(entries)
    .replaceAll('\n', ' | ').replaceAll('\u202f', ' ').replaceAll('\u00a0', ' ');
  say('tip-bars', says('Bars', [{seriesName: 'none', value: [0, 12.3456, 11, 15, '']},
    {seriesName: 'mask', value: [0, 7]}]));
  say('tip-lines', says('Many lines', {seriesName: 'one', value: [2, 1234.5]}));
  say('tip-box', says('Boxes', {value: [0]}));
  document.querySelector('.multiples td:last-child').dispatchEvent(
    new PointerEvent('pointermove', {clientX: 9, clientY: 9}));
  say('tip-cell', document.querySelector('.tip').textContent);
  demarc.tip.hide();
)";

// Text against what is behind it, as WCAG counts it.
constexpr const char* contrasts = R"(
  const part = (c) => c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4);
  const bright = ([r, g, b]) => 0.2126 * part(r / 255) + 0.7152 * part(g / 255) + 0.0722 * part(b / 255);
  const color = (text) => text.match(/[\d.]+/g).map(Number);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const found = color(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const weak = new Set();
  let seen = 0, links = 0;
  for (const e of document.body.querySelectorAll(':not(script, style, noscript, svg *)')) {
    const text = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!text || !e.checkVisibility()) continue;
    ++seen;
    if (e.tagName === 'A') ++links;
    const a = bright(color(getComputedStyle(e).color)), b = bright(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.add(e.tagName + '.' + e.className + ' ' + ratio.toFixed(2));
  }
  say('weak', [...weak].join('; '));
  say('seen', seen > 60);
  say('links', links > 4);
)";

constexpr const char* notices = R"(
  const notice = (message) => dispatchEvent(new ErrorEvent('error', {message}));
  const bars = () => document.querySelectorAll('.fault').length;
  notice('ResizeObserver loop completed with undelivered notifications.');
  notice('ResizeObserver loop limit exceeded');
  say('notices', bars());
  notice('Uncaught Error: on purpose');
  say('errors', bars());
)";

constexpr const char* tables = R"(
  const of = (name) => document.querySelector(`figure[aria-label=${name}]`);
  const seen = (name) => of(name).querySelector('.hint').checkVisibility();
  const box = of('Wide').querySelector('.scroll'), cut = () => box.classList.contains('cut');
  say('table-wide', await until(() => seen('Wide') && cut()));
  say('table-narrow', seen('Narrow'));
  box.scrollLeft = 1e6;
  say('table-end', await until(() => !cut()));
)";

// A phone that is turned, and turned back.
constexpr const char* turning = R"(
  const near = (a, b) => Math.abs(a - b) < 2;
  const fit = () => document.documentElement.scrollWidth <= innerWidth &&
    [...document.querySelectorAll('.plot')].every((plot) =>
      near(plot.querySelector('canvas').clientWidth, plot.clientWidth)) &&
    [...document.querySelectorAll('.heat canvas')].every((map) =>
      near(map.width / Math.min(2, devicePixelRatio), map.clientWidth));
  const turn = async (width) => {
    frameElement.style.width = width + 'px';
    const before = innerWidth;
    return before + ' ' + await until(fit);
  };
  say('turn-start', await until(fit));
  say('turn-little', await turn(480));
  say('turn-there', await turn(844));
  say('turn-back', await turn(390));
  say('turn-faults', document.querySelectorAll('.fault').length);
)";

// The rules for paper are put in force on the screen.
constexpr const char* paper = R"(
  const style = (name) => getComputedStyle(document.querySelector(name));
  const force = (on) => {
    for (const sheet of document.styleSheets)
      for (const rule of sheet.cssRules)
        if (rule.media && rule.media.mediaText.includes('print')) rule.media.mediaText = on ? 'all, print' : 'print';
  };
  const made = document.querySelector('.context'), bar = () => document.querySelector('.scale .bar').style.background;
  made.open = false;
  const plot = () => document.querySelector('.plot canvas'), wide = plot().clientWidth;
  const screen = bar();
  say('paper-before', style('body').backgroundColor);
  dispatchEvent(new Event('beforeprint'));
  force(true);
  say('paper-ground', style('body').backgroundColor);
  say('paper-card', style('figure').backgroundColor);
  say('paper-ink', style('.prose p').color);
  say('paper-figures', bar() === screen ? 'dark' : 'light');
  const size = plot();
  say('paper-plot', size.clientWidth > 300 && size.clientWidth <= 700 && size.clientHeight > 200);
  say('paper-heading', style('h2').breakAfter + ' ' + style('.title').breakAfter);
  say('paper-figure', style('figure').breakInside + ' ' + style('.panel').breakInside);
  say('paper-tools', style('nav').display + ' ' + style('.tools').display);
  say('paper-made', made.open);
  force(false);
  dispatchEvent(new Event('afterprint'));
  say('paper-after', style('body').backgroundColor + (bar() === screen ? ' dark' : ' light'));
  say('paper-folded', !made.open);
  say('paper-again', plot().clientWidth === wide && wide > 700);
)";

test::Opened asked(int width, const std::string& script, bool dark = false) {
  auto opened = test::open_page(rules_file(), width, 844, script, dark);
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.said, HasSubstr("data-finished=\"yes\"")) << opened.log;
  return opened;
}

std::string scopes(std::initializer_list<const char*> scripts) {
  std::string all;
  for (const char* script : scripts) all += std::string("{") + script + "}";
  return all;
}

// A browser takes seconds to start: one for each window, whatever is asked.
const std::string& on_desktop() {
  static const std::string said =
      asked(1280, test::after_drawing(scopes({navigation, numbers, multiples, ratios, squares,
                                              legends, tooltips, contrasts, notices})))
          .said;
  return said;
}

const std::string& on_phone() {
  static const std::string said =
      asked(390, test::between_frames(
                     scopes({navigation, multiples, squares, legends, tables, turning})))
          .said;
  return said;
}

const std::string& in_the_dark() {
  static const std::string said =
      asked(1280, test::after_drawing(scopes({contrasts, paper})), true).said;
  return said;
}

TEST(PageRules, navigation_is_one_line_until_it_is_opened) {
  for (const std::string& said : {on_desktop(), on_phone()}) {
    EXPECT_THAT(said, HasSubstr("data-nav-height=\"true\""));
    EXPECT_THAT(said, HasSubstr("data-nav-links=\"6\"")) << "four headings, a part, the context";
    EXPECT_THAT(said, HasSubstr("data-nav-folded=\"false\""));
    EXPECT_THAT(said, HasSubstr("data-nav-open=\"true\""));
  }
}

// Command, result, modes with their meaning, slowdown and overhead: without scrolling on a desktop;
// on a phone the first mode's slowdown and overhead.
TEST(PageRules, the_first_screen_of_a_study_is_its_result) {
  const auto script = test::after_drawing(
      "document.querySelector('.contents').open = false;"
      "const main = document.querySelector('main'), cards = "
      "[...document.querySelectorAll('.figures > div')];"
      "say('wide', document.documentElement.scrollWidth <= innerWidth);"
      "say('first', main.firstElementChild.textContent);"
      "say('words', main.children[1].textContent);"
      "const place = (e) => e.getBoundingClientRect().bottom + scrollY;"
      "const whole = frameElement ? place(cards[0]) : Math.max(...cards.map(place));"
      "say('fits', whole < 844 ? 'fits' : whole);"
      "say('meaning', cards[0].querySelector('.meaning').textContent);"
      "say('overhead', cards[0].querySelector('.second').textContent);"
      "say('command', document.querySelector('header .command code').textContent);"
      "say('kinds', [...main.children].slice(0, 5).map((e) => e.className || "
      "e.localName).join());");
  for (const int width : {1280, 390}) {
    const auto opened = test::open_page(study_file(), width, 844, script);
    EXPECT_THAT(opened.said, HasSubstr("data-wide=\"true\""));
    EXPECT_THAT(opened.said, HasSubstr("data-first=\"Result\""));
    EXPECT_THAT(opened.said, HasSubstr("data-words=\"what is recommended\""));
    EXPECT_THAT(opened.said, HasSubstr("data-command=\"demarc isolate --x\""));
    EXPECT_THAT(opened.said, HasSubstr("data-fits=\"fits\""));
    EXPECT_THAT(opened.said, HasSubstr("data-meaning=\"streams of one process"));
    EXPECT_THAT(opened.said, HasSubstr("data-overhead=\"1.51x\""));
    EXPECT_THAT(opened.dom, HasSubstr("Slowdown: mean time of a victim's kernels next to a busy"));
  }
}

TEST(PageRules, numbers_have_three_digits_and_counts_all_of_theirs) {
  EXPECT_THAT(on_desktop(),
              HasSubstr("data-numbers=\"0;1.23;12.3;0.00123;123;12 346;262 144;-10\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-places=\"0.975;1.005;1 234.5\""));
}

TEST(PageRules, maps_beside_each_other_share_one_scale_whose_end_stands_for_all_beyond) {
  EXPECT_THAT(on_desktop(), HasSubstr("data-map-same=\"true\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-map-other=\"true\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-map-ends=\"≤ 1,≥ 4\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-map-scales=\"1\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-map-place=\"beside\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-map-place=\"below\""));
}

TEST(PageRules, ratios_have_a_scale_of_two_colours_about_their_middle) {
  EXPECT_THAT(on_desktop(), HasSubstr("data-ratio-low=\"blue\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-ratio-middle=\"grey\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-ratio-high=\"red\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-ratio-ends=\"0.5,1,2\""));
}

TEST(PageRules, symmetric_maps_are_square_and_an_empty_map_is_a_sentence) {
  for (const std::string& said : {on_desktop(), on_phone()}) {
    EXPECT_THAT(said, HasSubstr("data-squares=\"2\"")) << "of three maps one is empty";
    EXPECT_THAT(said, HasSubstr("data-square=\"true\""));
    EXPECT_THAT(said, HasSubstr("data-empty=\"Nobody: no two blocks touch the same place.\""));
  }
  EXPECT_THAT(on_desktop(), HasSubstr("data-square-place=\"beside\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-square-place=\"below\""));
}

TEST(PageRules, legends_show_every_name_whole_and_a_pressed_name_hides_its_series) {
  for (const std::string& said : {on_desktop(), on_phone()}) {
    EXPECT_THAT(said, HasSubstr("data-legend-names=\"012345678\""));
    EXPECT_THAT(said, HasSubstr("data-legend-whole=\"true\""));
    EXPECT_THAT(said, HasSubstr("data-legend-hidden=\"false\""));
    EXPECT_THAT(said, HasSubstr("data-legend-shown=\"true\""));
  }
}

TEST(PageRules, tooltips_have_names_and_units) {
  EXPECT_THAT(on_desktop(), HasSubstr("data-tip-bars=\"victim MM | time | none: 12.3 us (11 to 15 "
                                      "us) | mask: 7 us\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-tip-lines=\"load 2 % | time | one: 1 235 us\""));
  EXPECT_THAT(on_desktop(),
              HasSubstr("data-tip-box=\"idle: time of 3 values | min 1 us | p25 1 us | median 2 "
                        "us | p75 3 us | max 3 us\""));
  EXPECT_THAT(on_desktop(),
              HasSubstr("data-tip-cell=\"victim MM, aggressor VA: 9 times the undisturbed time\""));
}

TEST(PageRules, a_table_wider_than_its_window_scrolls_and_says_so) {
  EXPECT_THAT(on_phone(), HasSubstr("data-table-wide=\"true\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-table-narrow=\"false\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-table-end=\"true\"")) << "at its end nothing is cut off";
}

TEST(PageRules, a_notice_of_an_observer_is_no_error_and_an_error_is_one) {
  EXPECT_THAT(on_desktop(), HasSubstr("data-notices=\"0\""));
  EXPECT_THAT(on_desktop(), HasSubstr("data-errors=\"1\""));
}

TEST(PageRules, figures_follow_the_window_without_an_error_and_nothing_is_wider_than_it) {
  EXPECT_THAT(on_phone(), HasSubstr("data-turn-start=\"true\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-turn-little=\"480 true\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-turn-there=\"844 true\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-turn-back=\"390 true\""));
  EXPECT_THAT(on_phone(), HasSubstr("data-turn-faults=\"0\""));
}

TEST(PageRules, on_paper_a_page_is_white_and_headings_stay_with_their_figures) {
  const std::string& said = in_the_dark();
  EXPECT_THAT(said, HasSubstr("data-paper-before=\"rgb(15, 20, 27)\""));
  EXPECT_THAT(said, HasSubstr("data-paper-ground=\"rgb(255, 255, 255)\""));
  EXPECT_THAT(said, HasSubstr("data-paper-card=\"rgb(255, 255, 255)\""));
  EXPECT_THAT(said, HasSubstr("data-paper-ink=\"rgb(0, 0, 0)\""));
  EXPECT_THAT(said, HasSubstr("data-paper-figures=\"light\""));
  EXPECT_THAT(said, HasSubstr("data-paper-plot=\"true\"")) << "as wide as paper";
  EXPECT_THAT(said, HasSubstr("data-paper-again=\"true\""));
  EXPECT_THAT(said, HasSubstr("data-paper-heading=\"avoid avoid\""));
  EXPECT_THAT(said, HasSubstr("data-paper-figure=\"avoid avoid\""));
  EXPECT_THAT(said, HasSubstr("data-paper-tools=\"none none\""));
  EXPECT_THAT(said, HasSubstr("data-paper-made=\"true\"")) << "how it was made is printed";
  EXPECT_THAT(said, HasSubstr("data-paper-after=\"rgb(15, 20, 27) dark\""));
  EXPECT_THAT(said, HasSubstr("data-paper-folded=\"true\""));
}

TEST(PageRules, the_browser_prints_the_page_with_every_figure_drawn) {
  const auto printed = test::fresh_folder("paper") / "page.pdf";
  const auto opened =
      test::open_page(rules_file(), 1280, 900,
                      "addEventListener('beforeprint', () => console.log('paper: ' + "
                      "document.querySelectorAll('.plot').length + '/' + "
                      "document.querySelectorAll('.plot[data-drawn]').length + ' ' + "
                      "document.documentElement.dataset.theme));",
                      true, printed);
  EXPECT_THAT(opened.log, HasSubstr("paper: 3/3 light"));
  std::ifstream in(printed, std::ios::binary);
  const std::string pdf{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(pdf.substr(0, 5), StartsWith("%PDF-"));
  EXPECT_GT(pdf.size(), 20000U);
}

TEST(PageRules, every_word_and_link_has_a_contrast_of_four_and_a_half) {
  for (const std::string& said : {on_desktop(), in_the_dark()}) {
    EXPECT_THAT(said, HasSubstr("data-weak=\"\"")) << said;
    EXPECT_THAT(said, HasSubstr("data-seen=\"true\""));
    EXPECT_THAT(said, HasSubstr("data-links=\"true\""));
  }
}

}  // namespace
}  // namespace demarc::report
