// Tests which block times are faults, and the timeline and JSON that are made of them.
#include "demarc/study/block_runs.hpp"

#include <gtest/gtest.h>

#include "demarc/base/json.hpp"
#include "kept.hpp"
#include "sms.hpp"

namespace demarc::study {
namespace {

BlockRun two_in_a_stream() {
  BlockRun run;
  run.name = "two";
  run.kernels = {{"K1", 0, 0, test::sm_list({0, 1}), 2, 100}, {"K2", 0, 0, {}, 1, 50}};
  run.blocks = {{0, 0, gpu::SmIndex(0), 0, 100},
                {0, 1, gpu::SmIndex(1), 5, 105},
                {1, 0, gpu::SmIndex(9), 110, 160}};
  return run;
}

TEST(BlockRuns, a_run_that_keeps_to_its_sms_and_its_order_has_no_fault) {
  EXPECT_TRUE(faults_of(two_in_a_stream()).empty());
}

TEST(BlockRuns, a_block_outside_its_sms_is_a_fault) {
  BlockRun run = two_in_a_stream();
  run.blocks[1].sm = gpu::SmIndex(2);
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
  run.blocks = {{1, 0, gpu::SmIndex(9), 0.5, 50}};
  EXPECT_TRUE(faults_of(run).empty());
}

TEST(BlockRuns, json_is_as_kept) {
  BlockRun run = two_in_a_stream();
  run.finding = "found";
  run.x_name = "SMs";
  run.y_name = "us";
  run.points = {{"a", 1, 2.5}};
  Json json = Json::parse(block_runs_json({run}, "demarc blocks"));
  for (const char* left_out : {"program", "revision"}) json["context"].erase(left_out);
  test::expect_kept("study/golden/block_run.txt", json_text(json) + "\n");
}

TEST(BlockRuns, the_timeline_has_a_span_for_each_block_by_start_and_sm) {
  BlockRun run = two_in_a_stream();
  run.blocks = {{1, 0, gpu::SmIndex(9), 110, 160},
                {0, 1, gpu::SmIndex(1), 5, 105},
                {0, 0, gpu::SmIndex(0), 5, 100}};
  const sim::DispatchTimeline timeline = block_timeline(run);
  EXPECT_EQ(timeline.title, "two");
  EXPECT_EQ(timeline.unit, "us");
  EXPECT_EQ(timeline.sms, 10U);
  EXPECT_EQ(timeline.kernels, (std::vector<std::string>{"K1", "K2"}));
  ASSERT_EQ(timeline.spans.size(), 3U);
  EXPECT_EQ(timeline.spans[0].sm, 0U);
  EXPECT_EQ(timeline.spans[1].sm, 1U);
  EXPECT_EQ(timeline.spans[2].kernel, 1U);
  EXPECT_EQ(timeline.spans[2].start, 110);
  EXPECT_EQ(timeline.spans[2].end, 160);
  EXPECT_EQ(timeline.spans[2].blocks, 1U);
}

}  // namespace
}  // namespace demarc::study
