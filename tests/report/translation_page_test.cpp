// The page and the trace of a made-up study of address translation: every number, and where.
#include "demarc/report/translation_page.hpp"

#include "golden.hpp"

namespace demarc::report {
namespace {

using sim::translation::Architecture;
using sim::translation::Comparison;

sim::translation::Summary summary_of(std::uint64_t n, std::size_t architecture) {
  sim::translation::Summary s;
  s.lines = 10'000;
  s.l1_tlb = {9'000 - 10 * n, 100, 900 + 10 * n};
  s.l2_tlb = {500 + n, 50, 350 + 9 * n};
  if (architecture == 0) {
    s.cycles = sim::Cycles(100'000 + 3'000 * n);
    s.iommu_accesses = 900 + 10 * n;
    return s;
  }
  s.cycles = sim::Cycles(100'000 - 9'000 * n + 1'000 * architecture);
  s.gmmu_walks = 350 + 8 * n;
  s.gmmu_hits = 100 + 20 * n;
  s.iommu_accesses = 700 - 30 * n;
  s.first_touches = 40 + n;
  s.remote_owned = 20 + n;
  s.remote_lines = 300 + 7 * n;
  return s;
}

Comparison compared(std::initializer_list<const char*> apps, std::size_t architectures,
                    std::uint64_t n) {
  Comparison comparison;
  comparison.architectures = {Architecture::centralised, Architecture::distributed,
                              Architecture::bypass};
  comparison.architectures.resize(architectures);
  for (const char* app : apps) {
    sim::translation::ApplicationResult result;
    result.name = app;
    for (std::size_t a = 0; a < architectures; ++a) result.summaries.push_back(summary_of(n, a));
    comparison.apps.push_back(result);
    ++n;
  }
  return comparison;
}

TEST(TranslationPage, shows_every_number_of_every_variant) {
  const auto apps = {"RL", "KM", "FIR", "ST", "MT", "AES"};
  sim::translation::Study study;
  study.runs.push_back({{"defaults", "as they are", {}, false}, compared(apps, 3, 1)});
  study.runs.push_back({{"chain", "another split", {"a=b"}, false}, compared(apps, 2, 2)});
  study.runs.push_back({{"bypass-oracle", "knows", {}, true}, compared(apps, 3, 3)});
  study.runs[2].comparison.apps[0].summaries[2].cycles = sim::Cycles(150'000);
  expect_golden("translation.json", blocks_of(translation_study_page(study, "the command")));
}

TEST(TranslationPage, of_a_comparison_shows_every_number) {
  expect_golden("translate.json",
                blocks_of(translation_page(compared({"KM", "mine"}, 3, 1), "the command")));
}

TEST(TranslationPage, of_one_architecture_shows_cycles_and_no_speed_up) {
  const std::string blocks = blocks_of(translation_page(compared({"KM"}, 1, 1), ""));
  EXPECT_NE(blocks.find("\"value\":\"103 000\""), std::string::npos) << blocks;
  EXPECT_EQ(blocks.find("Speed-up"), std::string::npos);
  EXPECT_EQ(blocks.find("\"chart\""), std::string::npos);
}

TEST(TranslationPage, of_splits_shows_each_beside_the_others_and_the_published_figures) {
  std::vector<Comparison> splits{compared({"KM", "RL"}, 2, 1), compared({"KM", "RL"}, 2, 2)};
  splits[1].settings.split = sim::translation::Split::native;
  expect_golden("translate_splits.json", blocks_of(translation_splits_page(splits, "command")));
}

TEST(TranslationPage, without_a_bypass_has_no_part_on_it) {
  sim::translation::Study study;
  study.runs.push_back({{"defaults", "", {}, false}, compared({"PR"}, 2, 1)});
  const std::string blocks = blocks_of(translation_study_page(study, ""));
  EXPECT_EQ(blocks.find("Dynamic bypass of the GMMU"), std::string::npos);
  study.runs[0].comparison = compared({"PR"}, 3, 1);
  EXPECT_NE(blocks_of(translation_study_page(study, "")).find("Dynamic bypass of the GMMU"),
            std::string::npos);
}

// Nothing to divide by is not a share, not a wrong one.
TEST(TranslationPage, an_application_without_requests_has_shares_of_zero) {
  sim::translation::Study study;
  study.runs.push_back({{"defaults", "", {}, false}, compared({"PR"}, 2, 1)});
  for (auto& summary : study.runs[0].comparison.apps[0].summaries) {
    summary = {};
    summary.cycles = sim::Cycles(1);
  }
  const std::string blocks = blocks_of(translation_study_page(study, ""));
  EXPECT_EQ(blocks.find("nan"), std::string::npos);
  EXPECT_EQ(blocks.find(",null]"), std::string::npos) << "no point is without a value";
}

TEST(TranslationTrace, has_rates_of_every_bin_and_what_is_inside_the_iommu) {
  sim::translation::Timeline timeline;
  timeline.bin_cycles = sim::Cycles(32);
  timeline.bins = {{1, 2, 30, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
  sim::translation::Timeline second = timeline;
  second.bin_cycles = sim::Cycles(64);
  expect_golden(
      "translation.trace.json",
      json_text(rounded(Json::parse(translation_trace(compared({"KM"}, 2, 1), {timeline, second}))),
                1) +
          "\n");
}

}  // namespace
}  // namespace demarc::report
