// Tests which block times are faults, and the picture and JSON that are made of them.
#include "demarc/study/block_runs.hpp"

#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "kept.hpp"

namespace demarc::study {
namespace {

BlockRun two_in_a_stream() {
  BlockRun run;
  run.name = "two";
  run.kernels = {{"K1", 0, 0, {0, 1}, 2, 100}, {"K2", 0, 0, {}, 1, 50}};
  run.blocks = {{0, 0, 0, 0, 100}, {0, 1, 1, 5, 105}, {1, 0, 9, 110, 160}};
  return run;
}

TEST(BlockRuns, a_run_that_keeps_to_its_sms_and_its_order_has_no_fault) {
  EXPECT_TRUE(faults_of(two_in_a_stream()).empty());
}

TEST(BlockRuns, a_block_outside_its_sms_is_a_fault) {
  BlockRun run = two_in_a_stream();
  run.blocks[1].sm = 2;
  EXPECT_EQ(faults_of(run), std::vector<std::string>{"1 of 2 blocks of K1 ran outside its SMs"});
}

TEST(BlockRuns, a_kernel_that_begins_before_the_one_in_front_of_it_has_ended_is_a_fault) {
  BlockRun run = two_in_a_stream();
  run.blocks[2].begin_us = 104;
  EXPECT_EQ(faults_of(run),
            std::vector<std::string>{"K2 began 1.0 us before K1 of the same stream had ended"});
  run.kernels[1].stream = 1;
  EXPECT_TRUE(faults_of(run).empty());
}

TEST(BlockRuns, a_kernel_of_which_no_block_was_seen_is_before_nobody) {
  BlockRun run = two_in_a_stream();
  run.blocks = {{1, 0, 9, 0.5, 50}};
  EXPECT_TRUE(faults_of(run).empty());
}

TEST(BlockRuns, picture_and_json_are_as_kept) {
  BlockRun run = two_in_a_stream();
  run.finding = "found";
  run.x_name = "SMs";
  run.y_name = "us";
  run.points = {{"a", 1, 2.5}};
  Json json = Json::parse(block_runs_json({run}, "demarc blocks"));
  for (const char* left_out : {"program", "revision"}) json["context"].erase(left_out);
  test::expect_kept("study/golden/block_run.txt", block_run_svg(run) + json_text(json) + "\n");
}

TEST(BlockRuns, the_picture_has_a_bar_for_each_block_and_the_json_a_row) {
  const BlockRun run = two_in_a_stream();
  const std::string svg = block_run_svg(run);
  std::size_t bars = 0;
  for (std::size_t at = svg.find("fill-opacity"); at != std::string::npos;
       at = svg.find("fill-opacity", at + 1)) {
    ++bars;
  }
  EXPECT_EQ(bars, 3U);
  const Json json = Json::parse(block_runs_json({run}, "demarc blocks"));
  EXPECT_EQ(json["schema"], "demarc.blocks/2");
  EXPECT_EQ(json["runs"][0]["blocks"].size(), 3U);
  EXPECT_EQ(json["runs"][0]["blocks"][2][2], 9);
}

}  // namespace
}  // namespace demarc::study
