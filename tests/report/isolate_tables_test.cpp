// Tables of a study's page: which numbers stand under which names.
#include "isolate_tables.hpp"

#include <gtest/gtest.h>

namespace demarc::report {
namespace {

study::Variation judged_by(std::size_t victim, double mean, std::optional<double> p99,
                           double worst) {
  study::Variation row;
  row.victim = victim;
  row.mean_percent.value = mean;
  if (p99) row.tail.p99 = study::P99Row{{*p99, *p99, *p99}, 0};
  row.tail.worst = {worst, p99 ? std::size_t{1000} : std::size_t{40}, 0};
  return row;
}

// Under none both victims have a p99, under mask one, and the mode in between did not run.
study::StudyResult two_modes() {
  study::StudyResult result;
  result.plan.modes = {{partition::Mode::none, false},
                       {partition::Mode::mps, false},
                       {partition::Mode::mask, false}};
  result.plan.victims = {{"va", "va"}, {"mm", "mm"}};
  result.plan.aggressors = {{"fwt", "fwt"}};
  result.modes.resize(3);
  for (std::size_t i = 0; i < 3; ++i) result.modes[i].mode = i;
  result.modes[0].victims = {judged_by(0, 3, 30, 99), judged_by(1, 5, 10, 99)};
  result.modes[0].mean = {2, 4, 5};
  result.modes[0].tail.p99 = {2, 20, 30};
  result.modes[1].unavailable = "no daemon";
  result.modes[2].victims = {judged_by(0, 1, 2, 99), judged_by(1, 3, {}, 7)};
  result.modes[2].mean = {2, 2, 3};
  result.modes[2].tail.p99 = {1, 2, 2};
  result.modes[2].tail.worst = {1, 7, 7};
  return result;
}

TEST(IsolateTables, slow_runs_say_whether_they_are_p99_or_the_worst_of_how_many) {
  EXPECT_EQ(markdown(tail_slowdown_table(two_modes())),
            "| victim | mask | none |\n"
            "|---|---:|---:|\n"
            "| va | 1.02x (p99) | 1.30x (p99) |\n"
            "| mm | 1.07x (worst of 40) | 1.10x (p99) |\n"
            "| average of p99 | 1.02x | 1.20x |\n"
            "| maximum of p99 | 1.02x | 1.30x |\n"
            "| average of the worst run | 1.07x |  |\n"
            "| maximum of the worst run | 1.07x |  |\n");
}

TEST(IsolateTables, without_any_p99_there_is_no_row_of_it) {
  study::StudyResult result = two_modes();
  result.modes[0].victims.clear();
  result.modes[2].tail.p99 = {};
  const std::string table = markdown(tail_slowdown_table(result));
  EXPECT_EQ(table.find("of p99"), std::string::npos) << table;
  EXPECT_EQ(table.find("none"), std::string::npos) << table;
}

TEST(IsolateTables, means_stand_with_their_average_and_maximum) {
  EXPECT_EQ(markdown(mean_slowdown_table(two_modes())),
            "| victim | mask | none |\n"
            "|---|---:|---:|\n"
            "| va | 1.01x | 1.03x |\n"
            "| mm | 1.03x | 1.05x |\n"
            "| average | 1.02x | 1.04x |\n"
            "| maximum | 1.03x | 1.05x |\n");
}

TEST(IsolateTables, overheads_are_good_up_to_a_twentieth_and_bad_above_twice_an_ideal_share) {
  study::StudyResult result = two_modes();
  result.modes[0].victims[0].overhead = 1.05;
  result.modes[0].victims[1].overhead = 2.01;
  result.modes[2].victims[0].overhead = 0.5;
  result.modes[2].victims[1].overhead = 2;
  const Table table = overhead_table(result);
  EXPECT_EQ(markdown(table),
            "| victim | mask | none |\n"
            "|---|---:|---:|\n"
            "| va | 0.50x | 1.05x |\n"
            "| mm | 2.00x | 2.01x |\n");
  EXPECT_EQ(table.rows[0][2].tone, Tone::good);
  EXPECT_EQ(table.rows[1][2].tone, Tone::bad);
  EXPECT_EQ(table.rows[1][1].tone, Tone::warning);
}

TEST(IsolateTables, the_recommended_mode_is_the_first_column_and_keeps_its_colour) {
  study::StudyResult result = two_modes();
  const auto first_of = [&] { return mean_slowdown_table(result).columns[1].name; };
  result.modes[0].mean.maximum = 2;
  result.modes[2].mean.maximum = 1;
  EXPECT_EQ(first_of(), "mask");
  result.modes[2].mean.maximum = 3;
  EXPECT_EQ(first_of(), "none");
  using partition::Mode;
  EXPECT_EQ(color_of({Mode::none}), 0U);
  EXPECT_EQ(color_of({Mode::mask}), 1U);
  EXPECT_EQ(color_of({Mode::mask, true}), 2U);
  EXPECT_EQ(color_of({Mode::mps}), 4U);
}

TEST(IsolateTables, the_first_table_says_what_the_victims_do) {
  EXPECT_EQ(mean_slowdown_table(two_modes()).rows[0][0].meaning, "vector addition (VA)");
  EXPECT_EQ(overhead_table(two_modes()).rows[0][0].meaning, "");
}

TEST(IsolateTables, a_victim_without_a_row_computed_a_wrong_output) {
  study::StudyResult result = two_modes();
  result.modes[2].victims.erase(result.modes[2].victims.begin());
  EXPECT_NE(markdown(mean_slowdown_table(result)).find("| va | 1.03x | wrong output |"),
            std::string::npos);
}

TEST(IsolateTables, five_per_cent_are_a_warning_and_twenty_are_bad) {
  EXPECT_EQ(tone_of(4.99), Tone::good);
  EXPECT_EQ(tone_of(5), Tone::warning);
  EXPECT_EQ(tone_of(19.99), Tone::warning);
  EXPECT_EQ(tone_of(20), Tone::bad);
}

TEST(IsolateTables, cells_that_could_not_run_have_no_row_of_times) {
  study::StudyResult result = two_modes();
  for (const char* why : {"", "too large"}) {
    study::Cell cell;
    cell.mode = 2;
    cell.not_run = why;
    result.cells.push_back(cell);
  }
  EXPECT_EQ(runs_table(result, result.modes[2]).rows.size(), 1U);
}

TEST(IsolateTables, the_p99_of_a_cell_is_what_it_is_at_least_where_the_runs_do_not_carry_one) {
  study::StudyResult result = two_modes();
  for (const std::size_t runs : {std::size_t{40}, std::size_t{1000}, std::size_t{0}}) {
    study::Cell cell;
    cell.mode = 2;
    if (runs != 40) cell.aggressor = 0;
    for (std::size_t i = 1; i <= runs; ++i) {
      cell.samples_ns.push_back(1000 * static_cast<double>(i));
    }
    cell.times = study::describe(cell.samples_ns);
    result.cells.push_back(cell);
  }
  result.cells.push_back({});  // of another mode
  const Table table = runs_table(result, result.modes[2]);
  ASSERT_EQ(table.rows.size(), 3U);
  const auto p99_of = [&table](std::size_t row) { return table.rows[row].at(5); };
  EXPECT_EQ(table.rows[0][1].text, "idle");
  EXPECT_EQ(p99_of(0).text, "at least 38.0");
  EXPECT_EQ(p99_of(0).number, 38.0);
  EXPECT_EQ(table.rows[1][1].text, "fwt");
  EXPECT_EQ(p99_of(1).text, "990");
  EXPECT_EQ(p99_of(2), Cell());
  EXPECT_EQ(table.rows[1][6].text, "1 000");
}

}  // namespace
}  // namespace demarc::report
