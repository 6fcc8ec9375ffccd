// The runs that a click on a cell of a study's page shows, and the command that repeats them.
#include "isolate_runs.hpp"

#include <gmock/gmock.h>

#include "demarc/base/json.hpp"
#include "golden.hpp"
#include "isolate_tables.hpp"
#include "made_up.hpp"

namespace demarc::report {
namespace {

using testing::ElementsAre;

study::Cell cell_of(std::size_t victim, std::optional<std::size_t> aggressor, double ns) {
  study::Cell cell;
  cell.mode = 2;
  cell.victim = victim;
  cell.aggressor = aggressor;
  cell.samples_ns = {ns, ns + 1000};
  return cell;
}

// Cells of va next to nothing, fwt and sp, and a cell of mm next to nothing.
study::StudyResult with_cells() {
  study::StudyResult result = made_up_study();
  result.cells = {cell_of(0, {}, 1000), cell_of(0, 0, 3000), cell_of(0, 1, 5000),
                  cell_of(1, {}, 7000)};
  return result;
}

std::vector<Json> runs_of(const study::StudyResult& result) {
  Page page("title");
  add_runs(page, result, "demarc isolate");
  return blocks_in(page.html());
}

TEST(IsolateRuns, of_a_cell_stand_with_those_next_to_idle_neighbours_of_the_same_victim) {
  const std::vector<Json> runs = runs_of(with_cells());
  ASSERT_EQ(runs.size(), 4U);
  EXPECT_EQ(runs[0]["key"], "mask+color|va|idle");
  EXPECT_EQ(runs[0]["plot"]["samples"].size(), 1U);
  EXPECT_EQ(runs[2]["key"], "mask+color|va|sp");
  EXPECT_EQ(runs[2]["plot"]["title"], "va under mask+color");
  const Json& samples = runs[2]["plot"]["samples"];
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0]["name"], "next to idle neighbours");
  EXPECT_EQ(samples[1]["name"], "next to sp");
  EXPECT_EQ(samples[0]["box"].front(), 1);
  EXPECT_EQ(samples[1]["box"].front(), 5);
  EXPECT_EQ(samples[1]["box"].back(), 6);
  EXPECT_EQ(runs[3]["key"], "mask+color|mm|idle");
}

TEST(IsolateRuns, of_cells_that_do_not_count_or_of_another_victim_are_left_out) {
  study::StudyResult result = with_cells();
  result.cells[0].error = "wrong output";
  result.cells[1].not_run = "too large";
  result.cells[3].aggressor = 0;  // mm has no idle cell, and that of va is not its own
  const std::vector<Json> runs = runs_of(result);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0]["key"], "mask+color|va|sp");
  EXPECT_EQ(runs[0]["plot"]["samples"].size(), 1U) << "its idle cell is wrong";
  EXPECT_EQ(runs[1]["plot"]["samples"].size(), 1U);
  result = with_cells();
  result.cells[2].mode = 0;
  EXPECT_EQ(runs_of(result)[2]["plot"]["samples"].size(), 1U) << "another mode";
  result.cells[2].samples_ns.clear();
  EXPECT_EQ(runs_of(result).size(), 3U);
}

TEST(IsolateRuns, are_repeated_by_the_command_with_the_options_of_the_cell) {
  const study::StudyResult result = with_cells();
  const auto command = [&](const std::string& line, std::size_t cell) {
    return command_of_cell(line, result, result.cells[cell]);
  };
  const std::string cell = " --modes mask+color --victims va --aggressors sp";
  EXPECT_EQ(command("demarc isolate --device sim:h200", 2),
            "demarc isolate --device sim:h200" + cell);
  EXPECT_EQ(command("demarc isolate --victims 'a b' --seed 7 --modes=none,mps --aggressors x "
                    "--aggressor-cmd 'my app --json' --html out.html --csv out.csv --json "
                    "--baseline old.json --resume=x.json --json=y.json -q",
                    2),
            "demarc isolate --seed 7 -q" + cell);
  EXPECT_EQ(command("demarc isolate --json --masks 0x1", 2), "demarc isolate --masks 0x1" + cell);
  EXPECT_EQ(command("demarc isolate", 3),
            "demarc isolate --modes mask+color --victims mm --aggressors fwt");
  EXPECT_EQ(command("demarc demo --html x", 2), "demarc demo --html x");
  EXPECT_EQ(command("demarc", 2), "demarc");
}

TEST(IsolateRuns, next_to_a_command_are_repeated_by_the_whole_line) {
  study::StudyResult result = with_cells();
  result.plan.aggressors[1] = study::command_workload("my app");
  const std::string line = "demarc isolate --aggressor-cmd 'my app' --victims va,mm";
  EXPECT_EQ(command_of_cell(line, result, result.cells[2]), line);
  EXPECT_EQ(command_of_cell(line, result, result.cells[1]),
            "demarc isolate --modes mask+color --victims va --aggressors fwt");
}

TEST(IsolateRuns, of_a_command_are_repeated_by_the_whole_line_and_are_not_times_of_kernels) {
  study::StudyResult result = with_cells();
  result.plan.victims[0] = study::command_workload("my app");
  const std::string line = "demarc isolate --victim-cmd 'my app' --victims mm --aggressors fwt,sp";
  EXPECT_EQ(command_of_cell(line, result, result.cells[1]), line);
  EXPECT_EQ(command_of_cell(line, result, result.cells[3]),
            "demarc isolate --modes mask+color --victims mm --aggressors fwt");
  const std::vector<Json> runs = runs_of(result);
  EXPECT_EQ(runs[1]["plot"]["value"]["name"], "time");
  EXPECT_EQ(runs[3]["plot"]["value"]["name"], "kernel time");
}

TEST(IsolateRuns, are_named_by_each_slowdown) {
  study::StudyResult result = with_cells();
  result.modes[2].victims[0].worst_for_mean = 1;
  const Table means = mean_slowdown_table(result);
  std::vector<std::string> keys;
  for (const Cell& cell : means.rows[0]) keys.push_back(cell.opens);
  EXPECT_THAT(keys, testing::Contains("mask+color|va|sp"));
  EXPECT_EQ(means.rows.back()[1].opens, "") << "a maximum has no runs of its own";
  keys.clear();
  const Table tails = tail_slowdown_table(result);
  for (const Cell& cell : tails.rows[0]) keys.push_back(cell.opens);
  EXPECT_THAT(keys, testing::Contains("mask+color|va|fwt")) << "of the slow runs' own neighbour";
}

}  // namespace
}  // namespace demarc::report
