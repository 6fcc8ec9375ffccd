// Tests what is said to have changed between two studies.
#include "demarc/study/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "demarc/base/json.hpp"
#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr double unbounded = std::numeric_limits<double>::infinity();

TEST(Change, is_judged_by_its_size_and_by_its_interval) {
  EXPECT_EQ(judge_change({1.05, 1.03, 1.07}), Change::worse);
  EXPECT_EQ(judge_change({0.95, 0.93, 0.97}), Change::better);
  EXPECT_EQ(judge_change({1.05, 0.99, 1.11}), Change::unchanged);
  EXPECT_EQ(judge_change({0.95, 0.89, 1.01}), Change::unchanged);
  EXPECT_EQ(judge_change({1.009, 1.008, 1.010}), Change::unchanged);
  EXPECT_EQ(judge_change({0.991, 0.990, 0.992}), Change::unchanged);
  EXPECT_EQ(judge_change({1.05, 1, 1.1}), Change::unchanged);
  EXPECT_EQ(judge_change({0.95, 0.9, 1}), Change::unchanged);
  EXPECT_EQ(judge_change({2, -unbounded, unbounded}), Change::unknown);
  EXPECT_EQ(judge_change({2, 1.5, unbounded}), Change::unknown);
  EXPECT_EQ(judge_change({2, -unbounded, 3}), Change::unknown);
}

TEST(Change, has_words_for_each_verdict) {
  EXPECT_EQ(to_string(Change::better), "better");
  EXPECT_EQ(to_string(Change::worse), "worse");
  EXPECT_EQ(to_string(Change::unchanged), "unchanged");
  EXPECT_EQ(to_string(Change::unknown), "unknown");
}

Cell cell_of(std::size_t mode, std::optional<std::size_t> aggressor, double ns) {
  Cell cell;
  cell.mode = mode;
  cell.aggressor = aggressor;
  cell.samples_ns = {ns - 10, ns, ns + 10, ns};
  cell.times = describe(cell.samples_ns);
  return cell;
}

StudyResult study_of(const char* modes, const char* aggressor, std::vector<Cell> cells) {
  StudyResult study;
  study.plan.modes = parse_modes(modes).value();
  study.plan.victims = {{"v", "v"}};
  study.plan.aggressors = {{aggressor, aggressor}};
  study.baselines = {{0, {500, 500}, describe(std::vector<double>{500, 500})}};
  study.cells = std::move(cells);
  return study;
}

// Its modes stand in another order than those of the other study.
StudyResult study_before() {
  return study_of(
      "mps,mask", "a",
      {cell_of(0, std::nullopt, 1000), cell_of(1, std::nullopt, 1000), cell_of(1, 0, 2000)});
}

TEST(Comparison, is_of_the_cells_with_the_same_names_and_names_the_others) {
  StudyResult now = study_of(
      "mask,none", "a",
      {cell_of(0, std::nullopt, 1000), cell_of(0, 0, 3000), cell_of(1, std::nullopt, 900)});
  now.device.driver = "2";
  const Comparison comparison = compare_studies(study_before(), "old.json", now);
  EXPECT_EQ(comparison.source, "old.json");
  EXPECT_THAT(comparison.differing,
              ElementsAre("driver: none and 2", "modes: mps,mask and mask,none"));
  ASSERT_EQ(comparison.cells.size(), 3U);
  EXPECT_EQ(comparison.cells[0].mode, "whole GPU");
  EXPECT_EQ(comparison.cells[1].verdict, Change::unchanged);
  const CellChange& worse = comparison.cells[2];
  EXPECT_EQ(worse.mode, "mask");
  EXPECT_EQ(worse.victim, "v");
  EXPECT_EQ(worse.aggressor, "a");
  EXPECT_EQ(worse.verdict, Change::worse);
  EXPECT_DOUBLE_EQ(worse.before_ns, 2000);
  EXPECT_DOUBLE_EQ(worse.now_ns, 3000);
  EXPECT_DOUBLE_EQ(worse.ratio.value, 1.5);
  EXPECT_GT(worse.ratio.low, 1.45);
  EXPECT_LT(worse.ratio.low, 1.5);
  EXPECT_GT(worse.ratio.high, 1.5);
  EXPECT_LT(worse.ratio.high, 1.55);
  EXPECT_THAT(comparison.only_before, ElementsAre("mps: v next to -"));
  EXPECT_THAT(comparison.only_now, ElementsAre("none: v next to -"));
}

TEST(Comparison, leaves_out_cells_whose_times_do_not_count) {
  StudyResult now = study_before();
  now.cells[0].error = "wrong";
  now.cells[1].not_run = "too large";
  now.cells[2].times = {};
  const Comparison comparison = compare_studies(study_before(), "old.json", now);
  EXPECT_EQ(comparison.cells.size(), 1U);
  EXPECT_EQ(comparison.only_before.size(), 3U);
  EXPECT_TRUE(comparison.only_now.empty());
}

TEST(Comparison, the_text_shows_what_changed_and_counts_the_rest) {
  StudyResult now = study_before();
  now.cells[0] = cell_of(0, std::nullopt, 500);
  now.cells[2] = cell_of(1, 0, 3000);
  Comparison comparison = compare_studies(study_before(), "old.json", now);
  EXPECT_EQ(comparison_text(comparison, false),
            "\n"
            "Compared with old.json:\n"
            "  mode             victim       next to       before us     now us   ratio    95 % "
            "interval\n"
            "  mps              v            -                   1.0        0.5   0.50x   0.49x to "
            "0.51x  better\n"
            "  mask             v            a                   2.0        3.0   1.50x   1.49x to "
            "1.51x  worse\n"
            "  Of 4 cells that both studies measured, 1 take less time (better), 1 take more "
            "(worse) and 2 are unchanged (within 1 %, or the interval includes 1.00x).\n");
  EXPECT_THAT(comparison_text(comparison, true), HasSubstr("  mask             v            -  "));
  comparison.differing = {"driver: 1 and 2", "seed: 3 and 4"};
  comparison.only_before = {"x", "y"};
  comparison.only_now = {"z"};
  comparison.cells = {comparison.cells[1]};
  comparison.cells[0].verdict = Change::unknown;
  const std::string text = comparison_text(comparison, false);
  EXPECT_THAT(text, HasSubstr("Compared with old.json, which was measured differently (there and "
                              "now): driver: 1 and 2; seed: 3 and 4:\n"));
  EXPECT_THAT(text, HasSubstr(" -  unknown\n"));
  EXPECT_THAT(text, HasSubstr("1 have too few runs for an interval (unknown).\n"));
  EXPECT_THAT(text, HasSubstr("Only in old.json: x, y\n"));
  EXPECT_THAT(text, HasSubstr("Only in this run: z\n"));
  comparison.cells[0].verdict = Change::unchanged;
  EXPECT_THAT(comparison_text(comparison, false), Not(HasSubstr("before us")));
  comparison.cells.clear();
  EXPECT_EQ(comparison_words(comparison), "The two studies have no cell in common.");
}

TEST(Comparison, stands_in_the_text_and_in_the_json_of_a_study) {
  StudyResult now = study_before();
  EXPECT_FALSE(Json::parse(study_json(now, "")).contains("comparison"));
  now.cells[2] = cell_of(1, 0, 3000);
  now.comparison = compare_studies(study_before(), "old.json", now);
  now.comparison->only_now = {"z"};
  now.comparison->only_before = {"x"};
  EXPECT_THAT(study_text(now), HasSubstr("Compared with old.json:\n"));
  EXPECT_THAT(study_text(now), Not(HasSubstr("unchanged\n")));
  EXPECT_THAT(study_text(now, TextDetail::everything), HasSubstr("unchanged\n"));
  const Json json = Json::parse(study_json(now, ""))["comparison"];
  EXPECT_EQ(json["source"], "old.json");
  EXPECT_EQ(json["differing"], Json::array());
  EXPECT_EQ(json["only_now"], Json({"z"}));
  EXPECT_EQ(json["only_before"], Json({"x"}));
  const Json& cell = json["cells"][3];
  EXPECT_EQ(cell["mode"], "mask");
  EXPECT_EQ(cell["victim"], "v");
  EXPECT_EQ(cell["aggressor"], "a");
  EXPECT_EQ(cell["before_ns"], 2000);
  EXPECT_EQ(cell["now_ns"], 3000);
  EXPECT_EQ(cell["ratio"]["value"], 1.5);
  EXPECT_EQ(cell["verdict"], "worse");
  EXPECT_EQ(json["cells"][0]["aggressor"], nullptr);
}

}  // namespace
}  // namespace demarc::study
