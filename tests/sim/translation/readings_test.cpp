// Both readings of what a GMMU keeps, under every split, side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "demarc/sim/translation/study.hpp"
#include "translation/small_machine.hpp"

namespace demarc::sim::translation {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ApplicationResult app_of(std::string name, std::uint64_t centralised, std::uint64_t distributed) {
  ApplicationResult app{std::move(name), std::vector<Summary>(2), 1, Split::contiguous};
  app.summaries[0].cycles = Cycles(centralised);
  app.summaries[1].cycles = Cycles(distributed);
  app.summaries[0].lines = app.summaries[1].lines = 1;
  return app;
}

// Made up: four applications under the defaults and under the other reading with the fitted split.
Study two_readings() {
  Study study;
  study.runs.resize(2);
  study.runs[0].variant.name = "defaults";
  for (StudyRun& run : study.runs) {
    run.comparison.architectures = {Architecture::centralised, Architecture::distributed};
    run.comparison.apps = {app_of("RL", 100, 100), app_of("KM", 110, 100),
                           app_of("FIR", 100'010, 100'000), app_of("MP", 92, 100)};
  }
  study.runs[1].comparison.settings.split = Split::native;
  study.runs[1].comparison.settings.gmmu_fill = GmmuFill::any;
  study.runs[1].comparison.apps[1] = app_of("KM", 481, 100);
  return study;
}

TEST(TranslationReadings, stand_side_by_side_with_verdicts_and_what_is_fitted) {
  const std::string text = readings_text(two_readings());
  EXPECT_THAT(text, StartsWith("gmmu_fill"));
  EXPECT_THAT(text, HasSubstr("       local         any\nsplit (*: fitted)"));
  EXPECT_THAT(text, HasSubstr("  roundrobin     native*\nfigure"));
  EXPECT_THAT(text, HasSubstr("paper           place\nRL: D over C"));
  EXPECT_THAT(text, HasSubstr("     1.00        1.00\nFIR: D over C"));
  EXPECT_THAT(text, HasSubstr(" 4.81            section 4.2, Figure 4    1.10 no     4.81 yes\n"));
  EXPECT_THAT(text, HasSubstr("C better        section 4.2, Figure 4     0.0 no      0.0 no\n"))
      << "FIR is ahead by a hundredth of a per cent, which is not printed as -0.0";
  EXPECT_THAT(text, HasSubstr("8 %             section 4.2, Figure 4     2.7 no      2.7 no\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("AES")));
  EXPECT_THAT(text, HasSubstr("\nA number of the paper is reproduced if ours lies within 10 % of "
                              "it.\nfitted: l2_tlb_sets=64 and l2_tlb_ways=16"));
  EXPECT_THAT(text,
              HasSubstr("\nfitted: split=native: contiguous in RL, KM, FIR, MP, chosen when the "
                        "paper's figures were known\nsettings of defaults\ngpus=4"));
}

TEST(TranslationReadings, count_what_each_reproduces) {
  const Study study = two_readings();
  const std::string text = readings_text(study);
  const auto line = text.substr(text.find("\nreproduced ") + 1);
  EXPECT_THAT(line.substr(0, line.find('\n')),
              testing::EndsWith(reproduced_text(claims_of(study.runs[0].comparison)) + "      " +
                                reproduced_text(claims_of(study.runs[1].comparison))));
}

TEST(TranslationReadings, one_below_the_other_keep_the_papers_words_and_our_expectations_apart) {
  const std::string text = study_text(two_readings());
  EXPECT_THAT(text, StartsWith("A number of the paper is reproduced if ours lies within 10 % of "
                               "it. The limits of statements without a number are ours.\n"
                               "defaults: \n  figure "));
  const std::string line =
      "4.81            section 4.2, Figure 4    4.81  4.33 to 5.29   yes         split\n";
  EXPECT_THAT(text,
              HasSubstr("4.81            section 4.2, Figure 4    1.10  4.33 to 5.29   no\n"));
  EXPECT_THAT(text, HasSubstr(line));
  const auto apart = text.find("  not in the paper, and what is expected:\n");
  ASSERT_NE(apart, std::string::npos);
  EXPECT_LT(text.find("KM: D over C"), apart);
  EXPECT_THAT(text.substr(apart), StartsWith("  not in the paper, and what is expected:\n"
                                             "  L2-TLB misses of C and D differ by at most, %: "
                                             "none: hits are nearly the same (inferred)  "));
  EXPECT_THAT(text, HasSubstr("\n  reproduced: 2 of 7\n"));
}

TEST(TranslationReadings, are_both_readings_under_every_split) {
  std::set<std::pair<GmmuFill, Split>> found{{GmmuFill::local, Split::roundrobin}};
  for (const std::string& name : reading_variants()) {
    const auto variants = study_variants();
    const auto at = std::find_if(variants.begin(), variants.end(),
                                 [&](const StudyVariant& one) { return one.name == name; });
    ASSERT_NE(at, variants.end()) << name;
    Settings settings;
    for (const std::string& assignment : at->assignments)
      ASSERT_TRUE(apply_setting(settings, assignment)) << assignment;
    EXPECT_TRUE(found.insert({settings.gmmu_fill, settings.split}).second) << name;
  }
  EXPECT_EQ(found.size(), 8U);
  for (const auto& [fill, split] : found)
    EXPECT_TRUE(fill == GmmuFill::local || fill == GmmuFill::any) << to_string(split);
}

TEST(TranslationReadings, need_no_bypass) {
  StudyOptions options;
  options.base = one_megabyte();
  options.apps = {"RL"};
  options.variants = {"any"};
  options.bypass = false;
  const auto study = reproduce_paper(options);
  ASSERT_TRUE(study) << study.error().message;
  ASSERT_EQ(study->runs.size(), 2U);
  EXPECT_EQ(study->runs[0].comparison.architectures.size(), 2U);
  options.bypass = true;
  EXPECT_EQ(reproduce_paper(options)->runs[0].comparison.architectures.size(), 3U);
}

}  // namespace
}  // namespace demarc::sim::translation
