// Speed-ups under each split of the work, one beside the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "demarc/base/json.hpp"
#include "demarc/sim/translation/report.hpp"
#include "demarc/sim/translation/study.hpp"
#include "translation/small_machine.hpp"

namespace demarc::sim::translation {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ApplicationResult app_of(std::string name, Split split, std::uint64_t centralised,
                         std::uint64_t distributed) {
  ApplicationResult app{std::move(name), std::vector<Summary>(2), 1, split};
  app.summaries[0].cycles = Cycles(centralised);
  app.summaries[1].cycles = Cycles(distributed);
  app.summaries[0].lines = app.summaries[1].lines = 1;
  return app;
}

// Made up: cycles of the two architectures.
std::vector<Comparison> three_splits() {
  std::vector<Comparison> splits(3);
  for (Comparison& one : splits)
    one.architectures = {Architecture::centralised, Architecture::distributed};
  splits[0].settings.split = Split::roundrobin;
  splits[0].apps = {app_of("RL", Split::roundrobin, 100, 100),
                    app_of("ST", Split::roundrobin, 400, 100)};
  splits[1].settings.split = Split::contiguous;
  splits[1].apps = {app_of("RL", Split::contiguous, 90, 100),
                    app_of("ST", Split::contiguous, 120, 100)};
  splits[2].settings.split = Split::native;
  splits[2].apps = {app_of("RL", Split::contiguous, 90, 100),
                    app_of("ST", Split::roundrobin, 400, 100)};
  return splits;
}

TEST(TranslationSplits, stand_beside_each_other_and_beside_the_published_figures) {
  EXPECT_THAT(splits_text(three_splits()),
              StartsWith("speed-up of distributed over centralised by split of the work\n"
                         "app     roundrobin  contiguous      native       paper  place\n"
                         "RL            1.00        0.90        0.90\n"
                         "ST            4.00        1.20        4.00        5.18  section 4.2, "
                         "Figure 4\n"
                         "mean          2.50        1.05        2.45\n"
                         "fitted: l2_tlb_sets=64 and l2_tlb_ways=16, to ST's IOMMU accesses and to "
                         "TLB hits\n"
                         "fitted: split=native (contiguous in RL and roundrobin in ST), chosen "
                         "when the paper's figures were known: KM, ST and all means follow from "
                         "it\n"
                         "settings of roundrobin\ngpus=4"));
}

TEST(TranslationSplits, have_a_table_for_each_architecture_and_published_figures_of_one) {
  std::vector<Comparison> splits = three_splits();
  for (Comparison& one : splits) {
    one.architectures.push_back(Architecture::bypass);
    for (ApplicationResult& app : one.apps) app.summaries.push_back(app.summaries[1]);
  }
  EXPECT_THAT(splits_text(splits),
              HasSubstr("speed-up of bypass over centralised by split of the work\n"
                        "app     roundrobin  contiguous      native\n"
                        "RL            1.00        0.90        0.90\n"
                        "ST            4.00        1.20        4.00\n"
                        "mean          2.50        1.05        2.45\nfitted"));
}

TEST(TranslationSplits, of_all_nine_applications_stand_beside_the_papers_mean) {
  std::vector<Comparison> splits = three_splits();
  for (Comparison& one : splits) {
    one.apps.clear();
    for (const ApplicationInfo& info : application_table())
      one.apps.push_back(app_of(std::string(info.name), Split::roundrobin, 300, 100));
  }
  EXPECT_THAT(splits_text(splits),
              HasSubstr("mean          3.00        3.00        3.00         2.0  section 4.2, "
                        "Figure 4\n"));
}

TEST(TranslationSplits, in_json_are_a_whole_result_each) {
  const Json json = Json::parse(splits_json(three_splits()));
  EXPECT_EQ(json["schema"], "demarc.translate.splits/1");
  ASSERT_EQ(json["splits"].size(), 3U);
  EXPECT_EQ(json["splits"][1]["split"], "contiguous");
  EXPECT_EQ(json["splits"][2]["result"]["settings"]["split"], "native");
  EXPECT_EQ(json["splits"][2]["result"]["apps"][0]["split"], "contiguous");
  EXPECT_EQ(json["splits"][0]["result"]["mean_speedup"], 2.5);
}

TEST(TranslationSplits, native_is_for_each_application_one_of_the_other_two) {
  const auto splits = compare_splits(one_megabyte(), {"KM", "ST"},
                                     {Architecture::centralised, Architecture::distributed}, 1);
  ASSERT_TRUE(splits) << splits.error().message;
  ASSERT_EQ(splits->size(), 3U);
  const auto cycles = [&](std::size_t split, std::size_t app) {
    return splits->at(split).apps.at(app).summaries[1].cycles;
  };
  EXPECT_EQ(splits->at(0).apps[0].split, Split::roundrobin);
  EXPECT_EQ(splits->at(1).apps[0].split, Split::contiguous);
  EXPECT_EQ(splits->at(2).apps[0].split, Split::contiguous);
  EXPECT_EQ(splits->at(2).apps[1].split, Split::roundrobin);
  EXPECT_EQ(cycles(2, 0), cycles(1, 0));
  EXPECT_EQ(cycles(2, 1), cycles(0, 1));
  EXPECT_NE(cycles(0, 0), cycles(1, 0));
}

TEST(TranslationSplits, a_run_says_which_it_had_and_that_native_is_fitted) {
  EXPECT_EQ(Settings{}.split, Split::roundrobin) << "as the published simulator dealt out";
  const std::vector<Comparison> splits = three_splits();
  EXPECT_THAT(to_text(splits[0]),
              HasSubstr("\nsplit of the work: roundrobin; another gives other speed-ups"));
  EXPECT_THAT(to_text(splits[2]),
              HasSubstr("split of the work: native: contiguous in RL and roundrobin in ST; "
                        "another gives other speed-ups (--split, --splits)\nfitted: l2_tlb_sets"));
  EXPECT_THAT(to_text(splits[2]), HasSubstr("\nfitted: split=native ("));
  EXPECT_THAT(to_text(splits[0]), testing::Not(HasSubstr("split=native (")));
}

TEST(TranslationSplits, variants_of_the_study_differ_from_each_other_and_mp_has_one_under_native) {
  std::set<std::string> seen;
  std::map<std::string, Settings> by_name;
  for (const StudyVariant& variant : study_variants()) {
    Settings settings;
    for (const std::string& assignment : variant.assignments)
      ASSERT_TRUE(apply_setting(settings, assignment)) << assignment;
    EXPECT_TRUE(seen.insert(settings_text(settings)).second) << variant.name;
    by_name[variant.name] = settings;
  }
  EXPECT_EQ(by_name.at("defaults").split, Split::roundrobin);
  EXPECT_EQ(by_name.at("native").split, Split::native);
  EXPECT_EQ(by_name.at("mp-roundrobin").split, Split::native);
  EXPECT_EQ(by_name.at("l1-fill").l1_fill_latency, Settings{}.l1_latency);
}

}  // namespace
}  // namespace demarc::sim::translation
