// The page of demarc translate study in a real browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "browser.hpp"
#include "demarc/report/translation_page.hpp"
#include "paths.hpp"

namespace demarc::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::filesystem::path translation_page_file() {
  sim::translation::StudyOptions options;
  options.base.megabytes = 1;
  options.base.cus = 4;
  options.base.iterations = 1;
  options.apps = {"RL", "MT", "KM", "FFT", "ST"};
  options.variants = {"chain", "bypass-oracle"};
  const auto study = sim::translation::reproduce_paper(options);
  EXPECT_TRUE(study) << study.error().message;
  auto file = test::fresh_folder("translation_study") / "index.html";
  std::ofstream(file, std::ios::binary)
      << translation_study_page(*study, "demarc translate study --html <x>");
  return file;
}

TEST(TranslationInBrowser, the_study_shows_four_figures_and_fits_a_desktop_and_a_phone) {
  const auto file = translation_page_file();
  for (const int width : {390, 1280}) {
    const auto opened = test::open_page(
        file, width, 844,
        test::after_drawing(
            "say('wide', document.documentElement.scrollWidth <= innerWidth ? 'fits' : "
            "document.documentElement.scrollWidth + '>' + innerWidth);"
            "say('plots', document.querySelectorAll('.plot').length + '/' + "
            "document.querySelectorAll('.plot[data-drawn]').length);"
            "say('heats', document.querySelectorAll('table.cells').length);"
            "say('figures', [...document.querySelectorAll('h2')].filter((h) => "
            "h.textContent.startsWith('Figure')).length);"
            "say('tables', document.querySelectorAll('table').length);"));
    EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
    EXPECT_THAT(opened.requests, IsEmpty());
    EXPECT_THAT(opened.said, HasSubstr("data-wide=\"fits\""));
    // Figures 4 to 7 and the two of what decides.
    EXPECT_THAT(opened.said, HasSubstr("data-plots=\"6/6\""));
    EXPECT_THAT(opened.said, HasSubstr("data-figures=\"4\""));
    EXPECT_THAT(opened.said, HasSubstr("data-heats=\"1\""));
    // Claims of the defaults and of one setting, Figures 5 and 6, bypass, settings and their map.
    EXPECT_THAT(opened.said, HasSubstr("data-tables=\"8\""));
    EXPECT_THAT(opened.dom, Not(HasSubstr("class=\"fault\"")));
    EXPECT_THAT(opened.dom, HasSubstr("4.81"));
  }
}

TEST(TranslationInBrowser, a_comparison_shows_its_speed_ups_first_and_fits_a_phone) {
  sim::translation::Settings settings;
  settings.megabytes = 1;
  settings.cus = 4;
  settings.iterations = 1;
  using sim::translation::Architecture;
  const auto comparison = sim::translation::compare(
      settings, {"MT", "KM"}, {Architecture::centralised, Architecture::distributed});
  ASSERT_TRUE(comparison) << comparison.error().message;
  const auto file = test::fresh_folder("translation_run") / "index.html";
  std::ofstream(file, std::ios::binary) << translation_page(*comparison, "demarc translate");
  const auto opened = test::open_page(
      file, 390, 844,
      test::after_drawing(
          "say('wide', document.documentElement.scrollWidth <= innerWidth);"
          "document.querySelector('.contents').open = false;"
          "say('first', document.querySelector('.figures').getBoundingClientRect().bottom < 400);"
          "say('plots', document.querySelectorAll('.plot[data-drawn]').length);"
          "say('rows', document.querySelectorAll('tbody tr').length);"));
  EXPECT_THAT(opened.console_errors, IsEmpty()) << opened.log;
  EXPECT_THAT(opened.requests, IsEmpty());
  EXPECT_THAT(opened.said, HasSubstr("data-wide=\"true\""));
  EXPECT_THAT(opened.said, HasSubstr("data-first=\"true\""));
  EXPECT_THAT(opened.said, HasSubstr("data-plots=\"2\""));
  EXPECT_THAT(opened.said, HasSubstr("data-rows=\"4\"")) << "two applications, two architectures";
  EXPECT_THAT(opened.dom, HasSubstr("Speed-up of distributed"));
  EXPECT_THAT(opened.dom, HasSubstr("one IOMMU translates for all GPUs"));
}

}  // namespace
}  // namespace demarc::report
