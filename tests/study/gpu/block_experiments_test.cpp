// The experiments of `demarc blocks` on the stand-in for libcuda, where blocks hold their SM for as
// long as they are told, by a clock that nothing else moves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "demarc/base/files.hpp"
#include "demarc/base/text.hpp"
#include "demarc/study/block_runs.hpp"
#include "fake_card.hpp"
#include "gpu/block_timer.hpp"
#include "gpu/growth.hpp"
#include "kept.hpp"
#include "number_ranges.hpp"
#include "sms.hpp"

namespace demarc::study {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class BlockExperiments : public testing::Test {
 protected:
  void SetUp() override {
    folder = test::fresh_folder("block_experiments");
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
    ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    test::configure(fake::small_gpu());
  }
  void TearDown() override {
    for (const char* name : {"DEMARC_CACHE", "DEMARC_LIBCUDA", "CUDA_DEVICE_MAX_CONNECTIONS"}) {
      ::unsetenv(name);
    }
    test::configure(fake::small_gpu());
  }
  static std::vector<BlockRun> run(const std::vector<std::string>& names,
                                   const std::vector<Workload>& growing = {}) {
    auto runs = run_block_experiments(0, names, growing);
    EXPECT_TRUE(runs) << runs.error().message;
    return runs ? std::move(*runs) : std::vector<BlockRun>();
  }
  [[nodiscard]] Workload pacing(const std::string& name) const;

  std::filesystem::path folder;
};

// What all blocks of a kernel have in common; of runs of many kernels without their times.
std::string kernel_text(const BlockRun& run, std::uint32_t k) {
  const RunKernel& kernel = run.kernels[k];
  const std::string planned =
      fmt::format("priority {}, {} blocks of {} us, may use SMs {}", kernel.priority, kernel.blocks,
                  kernel.hold_us, number_ranges(kernel.sms));
  if (run.kernels.size() > 40) return planned;
  double begin = 1e9;
  double end = 0;
  std::vector<gpu::SmIndex> used;
  for (const BlockTime& block : run.blocks) {
    if (block.kernel != k) continue;
    begin = std::min(begin, block.begin_us);
    end = std::max(end, block.end_us);
    used.push_back(block.sm);
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return fmt::format("{}, from {} to {} us on SMs {}", planned, begin, end, number_ranges(used));
}

// A line for each kernel; of kernels in a row that differ only in name and stream one for all.
std::string text_of(const BlockRun& run) {
  std::string out = fmt::format("{}: {}\n  x: {}; y: {}; holds: {}\n", run.name, run.finding,
                                run.x_name, run.y_name, run.holds);
  for (std::uint32_t k = 0; k < run.kernels.size();) {
    const std::string text = kernel_text(run, k);
    std::uint32_t last = k;
    while (last + 1 < run.kernels.size() && kernel_text(run, last + 1) == text) ++last;
    out +=
        fmt::format("  {} to {}, streams {} to {}: {}\n", run.kernels[k].name,
                    run.kernels[last].name, run.kernels[k].stream, run.kernels[last].stream, text);
    k = last + 1;
  }
  for (const RunPoint& point : run.points) {
    out += fmt::format("  {}: {} {:.6g}\n", point.series, point.x, point.y);
  }
  return out;
}

TEST_F(BlockExperiments, are_as_kept_on_a_card_whose_blocks_hold_for_as_long_as_they_are_told) {
  std::string text;
  for (const BlockRun& each : run({"figure-3", "figure-4", "figure-10", "figure-11"})) {
    text += text_of(each);
  }
  test::expect_kept("study/golden/block_experiments.txt", text);
}

TEST_F(BlockExperiments, a_mask_keeps_the_second_kernel_out_of_the_way_of_the_first) {
  const auto runs = run({"figure-3"});
  ASSERT_THAT(runs, SizeIs(2));
  // 48 blocks at a time: K1 has three times as many; with half the card each, K2 does not wait
  // but the delay in front of it.
  EXPECT_EQ(runs[0].finding, "K2 begins at 650 us and ends at 750 us; K1 ends at 600 us");
  EXPECT_EQ(runs[1].finding, "K2 begins at 50 us and ends at 150 us; K1 ends at 1200 us");
  EXPECT_TRUE(runs[0].holds && runs[1].holds);
}

TEST_F(BlockExperiments,
       as_many_kernels_run_at_a_time_as_have_room_and_priority_is_no_harm_to_the_other_half) {
  const auto runs = run({"figure-12"});
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_EQ(runs[0].finding, "200 kernels of one block in as many streams: at most 48 at a time");
  EXPECT_EQ(runs[1].finding,
            "400 us next to none, 400 us next to 46 kernels of high priority, 400 us next to 64");
  test::expect_kept("study/golden/block_priorities.txt", text_of(runs[0]) + text_of(runs[1]));
}

TEST_F(BlockExperiments, that_nobody_asked_for_do_not_run_and_unknown_ones_are_refused_by_name) {
  EXPECT_THAT(block_experiments(), ElementsAre("figure-3", "figure-4", "figure-10", "figure-11",
                                               "figure-12", "figure-13"));
  const auto runs = run({"figure-4"});
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_EQ(runs[0].name, "figure-4");
  const auto refused = run_block_experiments(0, {"figure-4", "figure-5"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(refused.error().message,
              HasSubstr("'figure-5' is not an experiment; the experiments are figure-3"));
}

TEST_F(BlockExperiments, open_more_channels_than_a_driver_does_unless_the_user_says_how_many) {
  run({});
  EXPECT_STREQ(::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 1);
  run({});
  EXPECT_STREQ(::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "8");
}

TEST_F(BlockExperiments, are_refused_on_a_card_without_masks) {
  fake::FakeConfig config = fake::small_gpu();
  config.descriptor_version = 0x99;  // where a mask lies in it is not known
  test::configure(config);
  const auto refused = run_block_experiments(0, {"figure-4"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
}

TEST_F(BlockExperiments, blocks_outside_their_partitions_are_told) {
  fake::FakeConfig config = fake::small_gpu();
  config.holds_stray = true;
  test::configure(config);
  const auto runs = run({"figure-10"});
  ASSERT_THAT(runs, SizeIs(1));
  EXPECT_FALSE(runs[0].holds);
  EXPECT_THAT(runs[0].finding, HasSubstr("ran outside its SMs"));
}

// A run takes a step for each number of the last SM that it reaches, and some more that change from
// run to run.
Workload BlockExperiments::pacing(const std::string& name) const {
  EXPECT_TRUE(write_file((folder / "pace.ptx").string(), R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry pace(.param .u64 runs)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [runs];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r2, [%rd1];
  add.u32 %r3, %r2, 1;
  st.global.u32 [%rd1], %r3;
  add.u32 %r4, %r2, %r2;
  rem.u32 %r4, %r4, 5;
  mov.u32 %r5, %smid;
  mad.lo.u32 %r6, %r5, 5, %r4;
next:
  sub.u32 %r6, %r6, 1;
  setp.gt.s32 %p1, %r6, 0;
  @%p1 bra next;
  ret;
}
)"));
  const std::string file = (folder / (name + ".json")).string();
  EXPECT_TRUE(write_file(file, fmt::format(R"({{"schema": "demarc.launch/1", "name": "{}",
    "ptx": "pace.ptx", "buffers": [{{"name": "runs", "bytes": 96, "element": "u32"}}],
    "launches": [{{"kernel": "pace", "grid": 24, "block": 1, "args": ["buf:runs"]}}]}})",
                                           name)));
  return {name, "launch:" + file};
}

TEST_F(BlockExperiments, a_partition_that_grows_is_timed_with_every_size_packed_and_distributed) {
  std::string text;
  for (const BlockRun& each : run({"figure-13"}, {pacing("one"), pacing("two")})) {
    text += text_of(each);
  }
  test::expect_kept("study/golden/block_growth.txt", text);
}

TEST(Growth, has_the_sizes_of_an_h100_and_ends_with_all_tpcs) {
  EXPECT_THAT(growth_steps(12), ElementsAre(1, 2, 4, 6, 8, 9, 10, 12));
  EXPECT_THAT(growth_steps(9), ElementsAre(1, 2, 4, 6, 8, 9));
  EXPECT_THAT(growth_steps(66),
              ElementsAre(1, 2, 4, 6, 8, 9, 10, 12, 16, 18, 20, 24, 32, 40, 48, 56, 66));
}

TEST(Growth, goes_gpc_by_gpc_or_round_them_with_the_largest_first) {
  gpu::Topology topology;
  // GPC 0 has one TPC, GPC 1 three, GPC 2 two.
  const std::uint32_t gpc_of[] = {1, 0, 2, 1, 2, 1};
  for (std::uint32_t t = 0; t < 6; ++t) {
    topology.tpcs.emplace_back();
    topology.tpcs.back().gpc = gpu::GpcIndex(gpc_of[t]);
  }
  EXPECT_EQ(joined(growth_order(topology, true), " "), "0 3 5 2 4 1");
  EXPECT_EQ(joined(growth_order(topology, false), " "), "0 2 1 3 4 5");
}

// All launches are enqueued before the first block begins, however long that takes the host.
TEST(BlockTimer,
     kernels_of_different_streams_begin_together_and_those_of_one_stream_in_their_order) {
  const auto card = test::fake_card();
  ASSERT_TRUE(card) << card.error().message;
  const auto timer = BlockTimer::make(*card);
  ASSERT_TRUE(timer) << timer.error().message;
  std::vector<PlannedKernel> planned(3);
  for (std::uint32_t k = 0; k < 3; ++k) {
    planned[k].kernel.name = fmt::format("K{}", k);
    planned[k].kernel.stream = k / 2;
    planned[k].kernel.hold_us = 10 + 5 * k;
    planned[k].kernel.blocks = 1 + k;
  }
  planned[2].tpcs = gpu::TpcSet{3};
  const auto run = timer->run("three", planned);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(run->name, "three");
  EXPECT_TRUE(run->holds);
  std::vector<std::string> seen;
  for (const BlockTime& b : run->blocks) {
    seen.push_back(
        fmt::format("{}.{} on {}: {} {}", b.kernel, b.block, b.sm, b.begin_us, b.end_us));
  }
  EXPECT_THAT(seen, ElementsAre("0.0 on 0: 0 10", "1.0 on 0: 10 25", "1.1 on 0: 10 25",
                                "2.0 on 6: 0 20", "2.1 on 6: 0 20", "2.2 on 7: 0 20"));
  EXPECT_EQ(run->kernels[2].sms, test::sm_list({6, 7}));
  EXPECT_THAT(run->kernels[0].sms, testing::IsEmpty());
}

TEST(BlockTimer, a_run_with_an_error_is_none) {
  const auto card = test::fake_card();
  const auto timer = BlockTimer::make(*card).value();
  test::fake_symbol<void(int)>("fake_fail_next_launch")(719);
  const auto gate = timer.run("gate", {PlannedKernel{}});
  ASSERT_FALSE(gate);
  EXPECT_THAT(gate.error().message, HasSubstr("cannot launch kernel 'demarc_hold'"));
  PlannedKernel none;
  none.tpcs = gpu::TpcSet{200};
  EXPECT_FALSE(timer.run("no such TPC", {none}));
  none.tpcs.reset();
  none.kernel.blocks = 0;
  EXPECT_FALSE(timer.run("no blocks", {none}));
}

}  // namespace
}  // namespace demarc::study
