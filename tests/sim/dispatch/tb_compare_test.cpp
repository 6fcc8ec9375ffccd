// Policies against a baseline, seed by seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "demarc/sim/dispatch/tb_compare.hpp"

#include "demarc/sim/dispatch/policies.hpp"

namespace demarc::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TbCell compared_cell(const char* policy, std::uint32_t level,
                     const std::vector<double>& antt_queue) {
  TbCell cell;
  cell.model = TbModel::corrected;
  cell.policy = policy;
  cell.level = level;
  for (const double value : antt_queue) {
    TbMetrics metrics;
    metrics.antt = metrics.stp = metrics.finished_share = metrics.fairness = 1;
    metrics.antt_queue = value;
    metrics.utilization = metrics.utilization_full = {50};
    cell.runs.push_back(metrics);
  }
  return cell;
}

// Workloads differ tenfold; the policy is always 20 % slower, at load 80 always 25 % faster.
TbStudy two_loads() {
  TbStudy study;
  study.options.seeds = 3;
  study.runs = 3;
  study.cells = {compared_cell("rr-skip", 40, {1, 10, 5}), compared_cell("rr", 40, {1.2, 12, 6}),
                 compared_cell("smk", 40, {1.2, 12, 6}),   compared_cell("rr-skip", 80, {8, 4, 80}),
                 compared_cell("rr", 80, {6, 3, 60}),      compared_cell("smk", 80, {6, 3, 59})};
  return study;
}

const TbMeasure& queueing() {
  return **find_tb_measure("antt-queue");
}

TEST(TbCompare, the_spread_between_workloads_falls_out_of_the_ratio) {
  const Estimate ratio = ratio_to_baseline(two_loads(), {TbMix::uniform, 40}, "rr", queueing());
  EXPECT_NEAR(ratio.mean, 1.2, 1e-12);
  EXPECT_NEAR(ratio.high - ratio.low, 0, 1e-12);
}

TEST(TbCompare, cells_are_joined_by_the_geometric_mean) {
  const Estimate ratio = ratio_to_baseline(two_loads(), {TbMix::uniform}, "rr", queueing());
  EXPECT_NEAR(ratio.mean, std::sqrt(1.2 * 0.75), 1e-12);
}

TEST(TbCompare, the_baseline_against_itself_is_one_and_nothing_is_zero) {
  EXPECT_EQ(ratio_to_baseline(two_loads(), {TbMix::uniform}, "rr-skip", queueing()).high, 1);
  EXPECT_EQ(ratio_to_baseline(two_loads(), {TbMix::extreme}, "rr", queueing()).mean, 0);
}

TEST(TbCompare, policies_are_equal_when_all_their_runs_in_the_selection_are) {
  const TbStudy study = two_loads();
  EXPECT_THAT(equal_policies(study, {TbMix::uniform, 40}),
              ElementsAre(ElementsAre("rr-skip"), ElementsAre("rr", "smk")));
  EXPECT_THAT(equal_policies(study, {TbMix::uniform}),
              ElementsAre(ElementsAre("rr-skip"), ElementsAre("rr"), ElementsAre("smk")));
}

TEST(TbCompare, the_table_has_the_baseline_itself_and_a_line_a_group) {
  const std::string table = compare_table(two_loads(), queueing());
  EXPECT_THAT(table, HasSubstr("uniform mix, load 40 %: ANTT with queueing (less is better)\n"
                               "policy                      16 SMs\n"
                               "rr-skip itself       5.333 ±11.202\n"
                               "rr-skip               1.000 ±0.000\n"
                               "rr, smk               1.200 ±0.000\n"));
}

TEST(TbCompare, one_seed_gives_no_interval) {
  TbStudy study = two_loads();
  study.options.seeds = 1;
  study.runs = 1;
  for (TbCell& cell : study.cells) cell.runs.resize(1);
  const std::string table = compare_table(study, queueing());
  EXPECT_THAT(table, StartsWith("1 seed, "));
  EXPECT_THAT(table, HasSubstr("\nrr, smk                      1.200\n"));
  EXPECT_THAT(table, HasSubstr("One seed gives no interval."));
  EXPECT_EQ(table.find("±"), std::string::npos);
}

TEST(TbCompare, an_unknown_measure_is_refused_with_the_known_ones) {
  const auto found = find_tb_measure("speed");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("known are antt, antt-queue, stp, use, finished"));
}

TEST(TbCompare, sizes_and_loads_are_taken_once_and_in_order) {
  TbStudyOptions options;
  options.seeds = 1;
  options.ticks = 50;
  options.sizes = {32, 16, 32};
  options.levels = {80, 40};
  const TbStudy study = compare_policies(options).value();
  EXPECT_EQ(study.cells.size(), 3U * 2U * 2U * dispatch_policies().size());
  EXPECT_THAT(study_sizes(study), ElementsAre(16, 32));
  EXPECT_THAT(study_levels(study), ElementsAre(40, 80));
}

}  // namespace
}  // namespace demarc::sim
