// The page of `demarc demo` in a real browser: of the study one victim and one aggressor, of which
// it takes seven and three unless less is asked for; all the rest as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "browser.hpp"
#include "paths.hpp"
#include "program.hpp"

namespace demarc::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::filesystem::path demo_page() {
  static const std::filesystem::path path = [] {
    auto file = test::fresh_folder("demo") / "index.html";
    const auto demo = test::run_demarc(
        {"demo", "--victims", "fwt", "--aggressors", "va", "--html", file.string()});
    EXPECT_EQ(demo.exit_code, 0) << demo.err;
    EXPECT_THAT(demo.out, HasSubstr("worst slowdown "));
    EXPECT_THAT(demo.out, HasSubstr("hotspot"));
    EXPECT_THAT(demo.out, HasSubstr("simulated colours isolate by construction"));
    return file;
  }();
  return path;
}

TEST(DemoInBrowser, opens_on_a_desktop_with_every_map_and_tree_and_asks_for_nothing) {
  const auto opened = test::open_page(
      demo_page(), 1280, 900,
      test::after_drawing(
          "const maps = [...document.querySelectorAll('.heat canvas')];"
          "say('maps', maps.length);"
          "say('drawn', maps.filter((c) => c.dataset.cells !== undefined).length);"
          "say('empty', document.querySelectorAll('p.empty').length);"
          "say('cells', document.querySelectorAll('.multiples table.cells').length);"
          "const facts = Object.fromEntries([...document.querySelectorAll('.context dt')].map("
          "(name) => [name.textContent, name.nextSibling.textContent]));"
          "say('one', facts['device of the slowdowns']);"
          "say('two', facts['device of the locality and hit rates']);"
          "say('seed', facts.seed);"
          "say('date', /^20\\d\\d-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC$/.test(facts.date));"
          "say('command', facts.command.includes('demo --victims fwt'));"
          "const trees = [...document.querySelectorAll('.graph svg')];"
          "say('trees', trees.length > 40 ? 'many' : trees.length);"
          "say('blank', trees.filter((s) => s.querySelectorAll('rect').length === 0 ||"
          " s.getBoundingClientRect().width === 0).length);"
          "const map = maps.at(-1),"
          " tools = map.closest('figure').querySelectorAll('button');"
          "say('before', map.dataset.zoom); tools[0].click(); say('after', map.dataset.zoom);"));
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-finished=\"yes\""));
  // For the twenty locality maps thirteen are empty; the three modes are tables on one scale.
  EXPECT_THAT(opened.said, HasSubstr("data-maps=\"7\""));
  EXPECT_THAT(opened.said, HasSubstr("data-drawn=\"7\""));
  EXPECT_THAT(opened.said, HasSubstr("data-empty=\"13\""));
  EXPECT_THAT(opened.said, HasSubstr("data-cells=\"3\""));
  EXPECT_THAT(opened.said, HasSubstr("data-one=\"GTX 1080 (simulated) (sim:gtx1080)\""));
  EXPECT_THAT(opened.said, HasSubstr("data-two=\"H100 SXM 80GB (a description)\""));
  EXPECT_THAT(opened.said, HasSubstr("data-seed=\"1 (order of the runs), "));
  EXPECT_THAT(opened.said, HasSubstr("data-date=\"true\""));
  EXPECT_THAT(opened.said, HasSubstr("data-command=\"true\""));
  EXPECT_THAT(opened.said, HasSubstr("data-trees=\"many\""));
  EXPECT_THAT(opened.said, HasSubstr("data-blank=\"0\""));
  EXPECT_THAT(opened.said, HasSubstr("data-before=\"1.000\""));
  EXPECT_THAT(opened.said, HasSubstr("data-after=\"2.000\""));
  EXPECT_THAT(opened.dom, Not(HasSubstr("class=\"fault\"")));
  EXPECT_THAT(opened.dom, HasSubstr("Simulated colours isolate by construction"));
}

TEST(DemoInBrowser, fits_a_phone_without_sideways_scrolling_or_tiny_letters) {
  const auto opened = test::open_page(
      demo_page(), 390, 844,
      test::after_drawing(
          "say('view', innerWidth);"
          "say('wide', document.documentElement.scrollWidth <= innerWidth ? 'fits' :"
          " document.documentElement.scrollWidth + '>' + innerWidth);"
          "const small = [...document.querySelectorAll('p, td, th, h1, h2, summary, figcaption')]"
          ".filter((e) => e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 11);"
          "say('tiny', small.length);"
          "say('tables', document.querySelectorAll('table').length > 3);"));
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-view=\"390\""));
  EXPECT_THAT(opened.said, HasSubstr("data-wide=\"fits\""));
  EXPECT_THAT(opened.said, HasSubstr("data-tiny=\"0\""));
  EXPECT_THAT(opened.said, HasSubstr("data-tables=\"true\""));
}

}  // namespace
}  // namespace demarc::report
