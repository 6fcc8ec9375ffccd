// The pages of demarc schedule study and compare in a real browser.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "browser.hpp"
#include "demarc/report/schedule_page.hpp"
#include "paths.hpp"

namespace demarc::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::filesystem::path schedule_page_file(const std::string& name, const std::string& html) {
  auto file = test::fresh_folder(name) / "index.html";
  std::ofstream(file, std::ios::binary) << html;
  return file;
}

sim::TbStudyOptions quick() {
  sim::TbStudyOptions options;
  options.seeds = 2;
  options.ticks = 300;
  options.sizes = {16};
  options.levels = {40, 80};
  return options;
}

// Says whether the page fits and how much it shows.
const std::string look_at_page = test::after_drawing(
    "say('wide', document.documentElement.scrollWidth <= innerWidth ? 'fits' : "
    "document.documentElement.scrollWidth + '>' + innerWidth);"
    "say('plots', document.querySelectorAll('.plot').length + '/' + "
    "document.querySelectorAll('.plot[data-drawn]').length);"
    "say('view', innerWidth);"
    "say('heats', [...document.querySelectorAll('.multiples table.cells')].filter((t) => "
    "t.querySelector('td').style.background).length);"
    "say('rows', document.querySelectorAll('tbody tr').length);");

// Without message, request, fault or sideways scrolling.
auto opened_cleanly(const std::filesystem::path& file, int width) {
  const auto opened = test::open_page(file, width, 844, look_at_page);
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr(fmt::format("data-view=\"{}\"", width)));
  EXPECT_THAT(opened.said, HasSubstr("data-wide=\"fits\""));
  EXPECT_THAT(opened.dom, Not(HasSubstr("class=\"fault\"")));
  return opened;
}

TEST(ScheduleInBrowser, the_study_opens_on_a_phone_without_message_request_or_sideways_scrolling) {
  const auto study = sim::reproduce_paper(quick()).value();
  const auto file =
      schedule_page_file("schedule_study", schedule_study_page(study, "demarc schedule study"));
  for (const int width : {390, 1280}) {
    const auto opened = opened_cleanly(file, width);
    EXPECT_THAT(opened.said, HasSubstr("data-plots=\"8/8\""));
    // 16 figures, then 10 loads of 5 lines for each mix.
    EXPECT_THAT(opened.said, HasSubstr("data-rows=\"126\""));
  }
}

TEST(ScheduleInBrowser, the_comparison_opens_with_three_maps_and_a_chart_for_each_mix) {
  const auto study = sim::compare_policies(quick()).value();
  const auto file = schedule_page_file("schedule_compare",
                                       schedule_compare_page(study, "demarc schedule compare"));
  for (const int width : {390, 1280}) {
    const auto opened = opened_cleanly(file, width);
    EXPECT_THAT(opened.said, HasSubstr("data-plots=\"3/3\""));
    EXPECT_THAT(opened.said, HasSubstr("data-heats=\"9\""));
    EXPECT_THAT(opened.dom, HasSubstr("rr, smk, fua"));
  }
}

}  // namespace
}  // namespace demarc::report
