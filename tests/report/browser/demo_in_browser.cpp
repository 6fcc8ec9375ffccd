// The whole page of `demarc demo` in a real browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "browser.hpp"
#include "demarc/base/json.hpp"
#include "demarc/report/locality_page.hpp"
#include "paths.hpp"

namespace demarc::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::filesystem::path demo_page() {
  static const std::filesystem::path path = [] {
    auto file = test::fresh_folder("demo") / "index.html";
    const auto demo = run_demo("sim:h100-sxm", "demarc demo --html index.html", {});
    EXPECT_TRUE(demo) << demo.error().message;
    if (demo) std::ofstream(file, std::ios::binary) << demo->page;
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
          "const trees = [...document.querySelectorAll('.graph svg')];"
          "say('trees', trees.length > 40 ? 'many' : trees.length);"
          "say('blank', trees.filter((s) => s.querySelectorAll('rect').length === 0 ||"
          " s.getBoundingClientRect().width === 0).length);"
          "const map = document.querySelector('.heat canvas'),"
          " tools = map.closest('figure').querySelectorAll('button');"
          "say('before', map.dataset.zoom); tools[0].click(); say('after', map.dataset.zoom);"));
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-finished=\"yes\""));
  EXPECT_THAT(opened.said, HasSubstr("data-maps=\"23\""));
  EXPECT_THAT(opened.said, HasSubstr("data-drawn=\"23\""));
  EXPECT_THAT(opened.said, HasSubstr("data-trees=\"many\""));
  EXPECT_THAT(opened.said, HasSubstr("data-blank=\"0\""));
  EXPECT_THAT(opened.said, HasSubstr("data-before=\"1.000\""));
  EXPECT_THAT(opened.said, HasSubstr("data-after=\"2.000\""));
  EXPECT_THAT(opened.dom, Not(HasSubstr("class=\"fault\"")));
}

// Chromium's window is at least 500 pixels wide without a screen: a frame of a phone's width stands
// in for it. The page lies in it as text.
std::filesystem::path demo_on_a_phone() {
  std::ifstream in(demo_page(), std::ios::binary);
  const std::string html{std::istreambuf_iterator<char>(in), {}};
  std::string text = Json(html).dump();
  for (auto at = text.find("</"); at != std::string::npos; at = text.find("</", at + 3))
    text.insert(at + 1, "\\");
  const auto file = test::fresh_folder("phone") / "phone.html";
  std::ofstream(file, std::ios::binary)
      << "<!DOCTYPE html>\n<html><head></head>\n<body><iframe id='phone' style='width:390px;"
         "height:844px;border:0'></iframe><script>document.getElementById('phone').srcdoc = "
      << text << ";</script></body></html>";
  return file;
}

TEST(DemoInBrowser, fits_a_phone_without_sideways_scrolling_or_tiny_letters) {
  const auto opened = test::open_page(
      demo_on_a_phone(), 800, 900,
      "const frame = document.getElementById('phone');"
      "frame.addEventListener('load', () => {"
      "const page = frame.contentDocument, view = frame.contentWindow;"
      "const say = (name, value) => document.body.setAttribute('data-' + name, value);"
      "for (const part of page.querySelectorAll('details')) part.open = true;"
      "view.dispatchEvent(new view.Event('beforeprint'));"
      "say('view', view.innerWidth);"
      "say('wide', page.documentElement.scrollWidth <= view.innerWidth ? 'fits' :"
      " page.documentElement.scrollWidth + '>' + view.innerWidth);"
      "const small = [...page.querySelectorAll('p, td, th, h1, h2, summary, figcaption')]"
      ".filter((e) => e.textContent.trim() && parseFloat(view.getComputedStyle(e).fontSize) < 11);"
      "say('tiny', small.length); say('tables', page.querySelectorAll('table').length > 3); });");
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-view=\"390\""));
  EXPECT_THAT(opened.said, HasSubstr("data-wide=\"fits\""));
  EXPECT_THAT(opened.said, HasSubstr("data-tiny=\"0\""));
  EXPECT_THAT(opened.said, HasSubstr("data-tables=\"true\""));
}

}  // namespace
}  // namespace demarc::report
