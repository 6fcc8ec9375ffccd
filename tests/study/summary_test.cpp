// The variation table of cells whose times are given: nothing runs.
#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

// Mean `mean`, worst `worst` of 40.
std::vector<double> times_of(double mean, double worst) {
  std::vector<double> times(40, (40 * mean - worst) / 39);
  times[17] = worst;
  return times;
}

void set_times(Cell& cell, const std::vector<double>& kernels, const std::vector<double>& runs) {
  cell.samples_ns = kernels;
  cell.times = describe(kernels);
  cell.runs_ns = runs;
  cell.runs = describe(runs.empty() ? kernels : runs);
}

// Two victims in one mode, each beside idle neighbours and three aggressors.
StudyResult with_times() {
  StudyResult result;
  result.plan.parts = 4;
  result.plan.modes = {{partition::Mode::none, false}, {partition::Mode::mask, false}};
  result.plan.victims = {{"short", "short"}, {"long", "long"}};
  result.plan.aggressors = {{"a", "a"}, {"b", "b"}, {"c", "c"}};
  result.modes.resize(2);
  result.modes[1].mode = 1;
  struct Given {
    std::size_t victim;
    std::optional<std::size_t> aggressor;
    double mean, worst, run;
  };
  for (const Given& given :
       {Given{0, {}, 100, 120, 200}, Given{0, 0, 150, 180, 220}, Given{0, 1, 130, 360, 210},
        Given{0, 2, 110, 130, 300}, Given{1, {}, 1000, 1100, 0}, Given{1, 0, 900, 1000, 0},
        Given{1, 1, 950, 1001, 0}, Given{1, 2, 940, 1045, 0}}) {
    Cell cell;
    cell.mode = 1;
    cell.victim = given.victim;
    cell.aggressor = given.aggressor;
    set_times(cell, times_of(given.mean, given.worst),
              given.run == 0 ? std::vector<double>() : times_of(given.run, 2 * given.run));
    result.cells.push_back(std::move(cell));
  }
  for (std::size_t victim = 0; victim < 2; ++victim) {
    Baseline baseline;
    baseline.victim = victim;
    baseline.times.mean = victim == 0 ? 20 : 500;
    result.baselines.push_back(baseline);
  }
  return result;
}

TEST(Summary, each_number_is_that_beside_its_own_worst_aggressor) {
  StudyResult result = with_times();
  summarize(result);
  ASSERT_EQ(result.modes[1].victims.size(), 2U);
  const Variation& row = result.modes[1].victims[0];
  EXPECT_NEAR(row.mean_percent.value, 50, 1e-9);
  EXPECT_EQ(row.worst_for_mean, 0U);
  EXPECT_LT(row.mean_percent.low, row.mean_percent.value);
  EXPECT_NEAR(row.tail.worst.percent, 200, 1e-9);
  EXPECT_EQ(row.tail.worst.aggressor, 1U);
  EXPECT_EQ(row.tail.worst.runs, 40U);
  EXPECT_NEAR(row.run_percent.value, 50, 1e-9);
  EXPECT_EQ(row.worst_for_run, 2U);
  EXPECT_NEAR(row.run_tail.worst.percent, 50, 1e-9);
  EXPECT_EQ(row.run_tail.worst.aggressor, 2U);
  EXPECT_NEAR(row.overhead, 100.0 / (4 * 20), 1e-9);
}

TEST(Summary,
     a_victim_that_no_aggressor_slows_has_the_mildest_gain_and_its_idle_time_is_the_worst) {
  StudyResult result = with_times();
  summarize(result);
  const Variation& row = result.modes[1].victims[1];
  EXPECT_NEAR(row.mean_percent.value, -5, 1e-9);
  EXPECT_EQ(row.worst_for_mean, 1U);
  EXPECT_NEAR(row.tail.worst.percent, -5, 1e-9);
  EXPECT_EQ(row.tail.worst.aggressor, 2U);
  EXPECT_NEAR(row.run_percent.value, -5, 1e-9);  // one kernel: its time is that of the run
  EXPECT_NEAR(row.run_tail.worst.percent, -5, 1e-9);
  EXPECT_NEAR(row.overhead, 0.5, 1e-9);
}

TEST(Summary, of_aggressors_that_slow_alike_the_first_is_named) {
  StudyResult result = with_times();
  for (Cell& cell : result.cells) {
    if (cell.aggressor) set_times(cell, times_of(150, 180), times_of(300, 400));
  }
  summarize(result);
  EXPECT_EQ(result.modes[1].victims[0].worst_for_mean, 0U);
  EXPECT_EQ(result.modes[1].victims[0].worst_for_run, 0U);
}

TEST(Summary, averages_and_maxima_are_over_the_victims_of_the_mode) {
  StudyResult result = with_times();
  summarize(result);
  summarize(result);  // once more changes nothing
  const ModeSummary& mode = result.modes[1];
  EXPECT_EQ(mode.mean.victims, 2U);
  EXPECT_NEAR(mode.mean.average, 22.5, 1e-9);
  EXPECT_NEAR(mode.mean.maximum, 50, 1e-9);
  EXPECT_NEAR(mode.tail.worst.average, 97.5, 1e-9);
  EXPECT_NEAR(mode.tail.worst.maximum, 200, 1e-9);
  EXPECT_NEAR(mode.run.average, 22.5, 1e-9);
  EXPECT_NEAR(mode.run_tail.worst.maximum, 50, 1e-9);
  EXPECT_TRUE(result.modes[0].victims.empty());
  EXPECT_EQ(result.modes[0].mean.victims, 0U);
}

TEST(Summary, a_victim_has_a_row_of_the_cells_that_count_and_none_without_an_idle_neighbour) {
  for (std::size_t which = 0; which < 4; ++which) {  // idle and each aggressor of the first victim
    StudyResult missing = with_times();
    missing.cells.erase(missing.cells.begin() + static_cast<std::ptrdiff_t>(which));
    summarize(missing);
    StudyResult wrong = with_times();
    wrong.cells[which].times = {};
    summarize(wrong);
    for (const StudyResult* result : {&missing, &wrong}) {
      const auto& rows = result->modes[1].victims;
      EXPECT_EQ(rows.back().victim, 1U);
      EXPECT_TRUE(rows.back().missing.empty());
      ASSERT_EQ(rows.size(), which == 0 ? 1U : 2U) << which;
      if (which == 0) continue;
      EXPECT_EQ(rows[0].missing, std::vector<std::size_t>{which - 1});
      EXPECT_NE(rows[0].worst_for_mean, which - 1);
      EXPECT_NE(rows[0].worst_for_run, which - 1);
    }
  }
}

TEST(Summary, a_victim_without_a_cell_beside_an_aggressor_has_no_row) {
  StudyResult result = with_times();
  for (Cell& cell : result.cells) {
    if (cell.victim == 0 && cell.aggressor) cell.times = {};
  }
  summarize(result);
  ASSERT_EQ(result.modes[1].victims.size(), 1U);
  EXPECT_EQ(result.modes[1].victims[0].victim, 1U);
}

TEST(Summary, text_and_json_give_the_worst_its_own_name_and_no_p99) {
  StudyResult result = with_times();
  summarize(result);
  const std::string text = study_text(result);
  EXPECT_EQ(text.find("p99"), std::string::npos) << text;
  EXPECT_NE(text.find("    1.50x  a              3.00x  b              1.50x  c  "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("slowest   the same for the slowest runs (worst of 40)"), std::string::npos)
      << text << "which runs they are is said once where it is the same of all victims";
  EXPECT_NE(text.find("slowdown of 2 victims: 1.22x on average and 1.50x at most; worst of 40 runs "
                      "1.98x on average and 3.00x at most\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("of whole runs, with the gaps between launches: 1.22x on average and 1.50x at "
                "most; worst of 40 runs 1.23x on average and 1.50x at most\n"),
      std::string::npos)
      << text;

  const Json json = Json::parse(study_json(result, ""));
  const Json& mode = json["modes"][1];
  const Json& row = mode["victims"][0];
  EXPECT_EQ(row["p99"], nullptr);
  EXPECT_EQ(row["worst"]["runs"], 40);
  EXPECT_EQ(row["worst"]["aggressor"], "b");
  EXPECT_EQ(row["run_p99"], nullptr);
  EXPECT_EQ(row["run_worst"]["aggressor"], "c");
  EXPECT_EQ(mode["mean"]["victims"], 2);
  EXPECT_EQ(mode["tail"]["p99"], nullptr);
  EXPECT_EQ(mode["tail"]["worst"]["min_runs"], 40);
  EXPECT_EQ(mode["tail"]["worst"]["max_runs"], 40);
  EXPECT_EQ(mode["run_tail"]["worst"]["victims"], 2);
  const Json& times = json["cells"][1]["times_ns"];
  EXPECT_EQ(times["p99"], nullptr);
  EXPECT_EQ(times["worst"], 180);
  EXPECT_TRUE(times["p99_95"][0].is_number());
  EXPECT_EQ(times["p99_95"][1], nullptr);  // 40 runs do not bound it from above
}

TEST(Summary, text_and_json_give_p99_where_the_samples_carry_it) {
  StudyResult result = with_times();
  std::vector<double> kernels(1000, 100);
  for (std::size_t i = 0; i < 20; ++i) kernels[i] = 160;
  for (Cell& cell : result.cells) {
    if (cell.victim == 1) continue;
    set_times(cell, cell.aggressor == 1 ? kernels : std::vector<double>(1000, 100), {});
  }
  summarize(result);
  const std::string text = study_text(result);
  EXPECT_NE(text.find("    1.60x  p99            b  "), std::string::npos) << text;
  EXPECT_NE(
      text.find("p99 of 1 victim 1.60x on average and 1.60x at most; worst of 40 runs of 1 victim "
                "0.95x on average and 0.95x at most\n"),
      std::string::npos)
      << text;
  const Json json = Json::parse(study_json(result, ""));
  const Json& mode = json["modes"][1];
  EXPECT_NEAR(mode["victims"][0]["p99"]["slowdown"]["value"].get<double>(), 1.6, 1e-9);
  EXPECT_EQ(mode["victims"][0]["p99"]["aggressor"], "b");
  EXPECT_EQ(mode["tail"]["p99"]["victims"], 1);
  EXPECT_EQ(mode["tail"]["worst"]["victims"], 1);
  EXPECT_EQ(json["cells"][2]["times_ns"]["p99"], 160);
  EXPECT_EQ(json["cells"][2]["times_ns"]["p99_95"], Json::array({160, 160}));
}

}  // namespace
}  // namespace demarc::study
