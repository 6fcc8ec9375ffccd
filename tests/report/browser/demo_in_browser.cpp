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

std::filesystem::path locality_page() {
  return demo_page().parent_path() / "index-locality.html";
}

// How many screens the page is long, as a reader finds it.
std::string screens_of(const std::filesystem::path& page, int width, int height) {
  const std::string script =
      "addEventListener('load', () => {"
      "const said = (frameElement ? parent : window).document.body;"
      "const length = document.documentElement.scrollHeight / innerHeight;"
      "said.setAttribute('data-screens', length <= 8 ? 'few' : length); });";
  return test::open_page(page, width, height, script).said;
}

TEST(DemoInBrowser, tells_its_story_in_eight_screens_on_a_desktop_and_on_a_phone) {
  EXPECT_THAT(screens_of(demo_page(), 1440, 900), HasSubstr("data-screens=\"few\""));
  EXPECT_THAT(screens_of(demo_page(), 390, 844), HasSubstr("data-screens=\"few\""));
}

TEST(DemoInBrowser, shows_each_slowdown_with_its_runs_and_asks_for_nothing) {
  const auto opened = test::open_page(
      demo_page(), 1280, 900,
      test::after_drawing(
          "say('maps', document.querySelectorAll('.multiples table.cells').length);"
          "const facts = Object.fromEntries([...document.querySelectorAll('.context dt')].map("
          "(name) => [name.textContent, name.nextSibling.textContent]));"
          "say('device', facts.device); say('seed', facts.seed);"
          "say('date', /^20\\d\\d-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC$/.test(facts.date));"
          "say('top', document.querySelector('header .command code').textContent.includes('demo "
          "--victims fwt'));"
          "say('first', document.querySelectorAll('table th button')[1].textContent);"
          "say('link', document.querySelector('nav a.page').getAttribute('href'));"
          "document.querySelectorAll('table td button.opens')[1].click();"
          "const dialog = document.querySelector('dialog');"
          "say('title', dialog.getAttribute('aria-label'));"
          "say('rows', dialog.querySelectorAll('tbody tr').length);"
          "say('again', dialog.querySelector('.command code').textContent);"
          "dialog.querySelector('button').click();"
          "say('closed', dialog.open);"));
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-finished=\"yes\""));
  EXPECT_THAT(opened.said, HasSubstr("data-maps=\"3\""));
  EXPECT_THAT(opened.said, HasSubstr("data-device=\"GTX 1080 (simulated) (sim:gtx1080)\""));
  EXPECT_THAT(opened.said, HasSubstr("data-seed=\"1\""));
  EXPECT_THAT(opened.said, HasSubstr("data-date=\"true\""));
  EXPECT_THAT(opened.said, HasSubstr("data-top=\"true\""));
  EXPECT_THAT(opened.said, HasSubstr("data-first=\"mask+color\""));
  EXPECT_THAT(opened.said, HasSubstr("data-link=\"index-locality.html\""));
  EXPECT_THAT(opened.said, HasSubstr("data-title=\"fwt under none\""));
  EXPECT_THAT(opened.said, HasSubstr("data-rows=\"2\""));
  EXPECT_THAT(opened.said,
              HasSubstr("data-again=\"demarc isolate --device sim:gtx1080 --warm-up 1 --samples 3 "
                        "--max-samples 3 --rounds 1 --modes none --victims fwt --aggressors va\""));
  EXPECT_THAT(opened.said, HasSubstr("data-closed=\"false\""));
  EXPECT_THAT(opened.dom, Not(HasSubstr("class=\"fault\"")));
  EXPECT_THAT(opened.dom, HasSubstr("Simulated colours isolate by construction"));
}

TEST(DemoInBrowser, shows_every_map_and_tree_of_the_locality_study) {
  const auto opened = test::open_page(
      locality_page(), 1280, 900,
      test::after_drawing(
          "const maps = [...document.querySelectorAll('.heat canvas')];"
          "say('maps', maps.length);"
          "say('drawn', maps.filter((c) => c.dataset.cells !== undefined).length);"
          "say('empty', document.querySelectorAll('p.empty').length);"
          "say('link', document.querySelector('nav a.page').getAttribute('href'));"
          "const trees = [...document.querySelectorAll('.graph svg')];"
          "say('trees', trees.length > 40 ? 'many' : trees.length);"
          "say('blank', trees.filter((s) => s.querySelectorAll('rect').length === 0 ||"
          " s.getBoundingClientRect().width === 0).length);"
          "const map = maps.at(-1),"
          " tools = map.closest('figure').querySelectorAll('button');"
          "say('before', map.dataset.zoom); tools[0].click(); say('after', map.dataset.zoom);"));
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  // For the twenty locality maps thirteen are empty.
  EXPECT_THAT(opened.said, HasSubstr("data-maps=\"7\""));
  EXPECT_THAT(opened.said, HasSubstr("data-drawn=\"7\""));
  EXPECT_THAT(opened.said, HasSubstr("data-empty=\"13\""));
  EXPECT_THAT(opened.said, HasSubstr("data-link=\"index.html\""));
  EXPECT_THAT(opened.said, HasSubstr("data-trees=\"many\""));
  EXPECT_THAT(opened.said, HasSubstr("data-blank=\"0\""));
  EXPECT_THAT(opened.said, HasSubstr("data-before=\"1.000\""));
  EXPECT_THAT(opened.said, HasSubstr("data-after=\"2.000\""));
  EXPECT_THAT(opened.dom, Not(HasSubstr("class=\"fault\"")));
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
