// The executor on a real GPU: what it says of the card and of its parts, and that kernels stay in
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "demarc/base/files.hpp"
#include "demarc/base/hash.hpp"
#include "demarc/driver/stream.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "demarc/workload/workload.hpp"
#include "fake_card.hpp"
#include "gpu/support_kernels.hpp"
#include "small_kernels.hpp"

namespace demarc::study {
namespace {

using testing::HasSubstr;

class ExecutorParts : public testing::Test {
 protected:
  void SetUp() override {
    folder = test::fresh_folder("executor_parts");
    ::setenv("DEMARC_CACHE", (folder / "cache").c_str(), 1);
    ::setenv("DEMARC_LIBCUDA", test::fake_libcuda().c_str(), 1);
    test::configure(fake::small_gpu());
    options.arena_pages_a_part = 4;
    options.masks = {0xc4000};
  }
  void TearDown() override {
    for (const char* name : {"DEMARC_CACHE", "DEMARC_LIBCUDA"}) ::unsetenv(name);
    test::configure(fake::small_gpu());
  }
  [[nodiscard]] std::unique_ptr<Executor> open() const {
    auto executor = make_gpu_executor(options);
    EXPECT_TRUE(executor) << executor.error().message;
    return std::move(*executor);
  }
  static std::unique_ptr<Stage> divided(Executor& executor, std::string_view mode,
                                        std::uint32_t parts = 2) {
    auto stage = executor.divide(parse_modes(mode)->at(0), parts);
    EXPECT_TRUE(stage) << stage.error().message;
    return stage ? std::move(*stage) : nullptr;
  }
  // For 64 blocks each notes whether its SM is one of those given.
  [[nodiscard]] Workload staying(const std::string& name, std::uint64_t sms) const;

  std::filesystem::path folder;
  GpuExecutorOptions options;
};

TEST_F(ExecutorParts, the_card_is_named_with_its_driver_and_its_sms) {
  const auto executor = open();
  const DeviceContext context = executor->context();
  EXPECT_EQ(context.device, "cuda:0");
  EXPECT_EQ(context.name, "Fake GPU");
  EXPECT_EQ(context.sms, 24U);
  EXPECT_TRUE(context.measured);
  EXPECT_FALSE(context.driver.empty());
  const auto stage = executor->whole().value();
  EXPECT_EQ(stage->account(), "the whole GPU");
  EXPECT_EQ(stage->lanes(), 1U);
  GpuExecutorOptions other;
  other.device = 9;
  EXPECT_FALSE(make_gpu_executor(other));
}

TEST_F(ExecutorParts, accounts_name_the_sms_of_each_part_and_their_domains) {
  const auto executor = open();
  EXPECT_EQ(divided(*executor, "none", 3)->account(),
            "3 streams of one process; each part has a memory synchronisation domain");
  EXPECT_EQ(divided(*executor, "mask")->account(),
            "part 1/2: SMs 0-1, 4-7, 10-13, 16-19; part 2/2: SMs 2-3, 8-9, 14-15, 20-23; each part "
            "has a memory synchronisation domain");
}

// Where any set of TPCs will do the options say how they are chosen; else parts are packed.
TEST_F(ExecutorParts, the_split_decides_where_tpcs_can_be_chosen) {
  options.split = partition::SplitStrategy::packed;
  EXPECT_EQ(divided(*open(), "mask")->account(),
            "part 1/2: SMs 0-3, 6-9, 12-13, 18-19; part 2/2: SMs 4-5, 10-11, 14-17, 20-23; each "
            "part has a memory synchronisation domain");
}

TEST_F(ExecutorParts, only_the_victims_stream_has_the_priority_of_the_options) {
  const auto priority = test::fake_symbol<int()>("fake_launch_priority");
  options.victim_priority = -3;
  const auto executor = open();
  for (const char* mode : {"none", "mask"}) {
    SCOPED_TRACE(mode);
    const auto stage = divided(*executor, mode, 3);
    ASSERT_NE(stage, nullptr);
    for (std::uint32_t part = 0; part < 3; ++part) {
      ASSERT_TRUE(stage->lane(part).load(staying("any", 1)));
      ASSERT_TRUE(stage->lane(part).outputs());
      EXPECT_EQ(priority(), part == 0 ? -3 : 0);
    }
  }
}

// An SM of the stand-in takes one block, so the 64 blocks of the workload are one slice.
TEST_F(ExecutorParts, under_preempt_the_victim_has_priority_and_neighbours_run_in_slices) {
  const auto priority = test::fake_symbol<int()>("fake_launch_priority");
  const auto launches = test::fake_symbol<std::uint64_t()>("fake_launch_count");
  for (const int given : {0, -2}) {
    options.victim_priority = given;
    const int expected = given == 0 ? cuda::highest_stream_priority : given;
    const auto executor = open();
    const auto stage = divided(*executor, "preempt");
    ASSERT_NE(stage, nullptr);
    EXPECT_THAT(stage->account(), testing::StartsWith(fmt::format(
                                      "2 streams of one process; the victim's has priority {}, "
                                      "and neighbours' launches are cut into slices that fill "
                                      "the GPU 8 times and begin only while the victim has no "
                                      "work; each part has",
                                      expected)));
    for (std::uint32_t part = 0; part < 2; ++part) {
      Lane& lane = stage->lane(part);
      ASSERT_TRUE(lane.load(staying("any", 1)));
      ASSERT_TRUE(lane.outputs());
      const std::uint64_t before = launches();
      ASSERT_TRUE(lane.sample(1, 10));
      EXPECT_EQ(launches() - before, 2U) << "a run that is not counted, and one";
      EXPECT_EQ(priority(), part == 0 ? expected : 0);
    }
  }
}

// A neighbour that is stopped while the victim has work would never end.
TEST_F(ExecutorParts, under_preempt_neighbours_give_way_to_the_victim_that_is_timed) {
  const auto executor = open();
  const auto stage = divided(*executor, "preempt");
  ASSERT_NE(stage, nullptr);
  for (std::uint32_t part = 0; part < 2; ++part) {
    ASSERT_TRUE(stage->lane(part).load(staying("any", 1)));
  }
  ASSERT_TRUE(stage->lane(1).start());
  ASSERT_TRUE(stage->lane(0).sample(30, 10));
  const auto rate = stage->lane(1).stop();
  ASSERT_TRUE(rate) << rate.error().message;
  EXPECT_GT(*rate, 0) << "its first run, before the victim came";
}

// The driver brings a number outside of its range into it.
TEST_F(ExecutorParts, preempt_needs_a_victim_that_comes_first) {
  options.victim_priority = 3;
  const auto executor = open();
  const auto stage = executor->divide(parse_modes("preempt").value().front(), 2);
  ASSERT_FALSE(stage);
  EXPECT_EQ(stage.error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(stage.error().message,
            "preempt: the victim's stream has priority 0 and its neighbours' 0; it must be lower");
}

// What is found out with masks is remembered, so that nothing is where they were not used.
TEST_F(ExecutorParts, masks_are_left_alone_in_modes_that_do_not_need_them) {
  const auto executor = open();
  ASSERT_NE(divided(*executor, "none"), nullptr);
  EXPECT_FALSE(std::filesystem::exists(folder / "cache"));
  ASSERT_NE(divided(*executor, "mask"), nullptr);
  EXPECT_TRUE(std::filesystem::exists(folder / "cache"));
}

TEST_F(ExecutorParts, one_pool_of_coloured_memory_serves_all_modes) {
  const auto alive = test::fake_symbol<std::int64_t()>("fake_live_objects");
  const auto executor = open();
  const auto first = divided(*executor, "mask+color");
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(first->account(), HasSubstr("each part has a memory synchronisation domain; "));
  EXPECT_THAT(first->account(), HasSubstr("; 8 pages measured, "));
  const std::int64_t before = alive();
  const auto second = divided(*executor, "mask+color+graph");
  ASSERT_NE(second, nullptr);
  EXPECT_LT(alive() - before, 8) << "streams and kernels, no pages";
}

Workload ExecutorParts::staying(const std::string& name, std::uint64_t sms) const {
  EXPECT_TRUE(write_file((folder / "stay.ptx").string(), test::small_module(R"(
.visible .entry stay(.param .u64 out, .param .u64 sms)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [sms];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  mov.u32 %r2, %smid;
  shr.u64 %rd4, %rd2, %r2;
  cvt.u32.u64 %r3, %rd4;
  and.b32 %r3, %r3, 1;
  st.global.u32 [%rd1], %r3;
  ret;
}
)")));
  const std::string file = (folder / (name + ".json")).string();
  EXPECT_TRUE(write_file(file, fmt::format(R"({{"schema": "demarc.launch/1", "name": "stay",
    "ptx": "stay.ptx",
    "buffers": [{{"name": "out", "bytes": 256, "element": "u32", "output": true}}],
    "launches": [{{"kernel": "stay", "grid": 64, "block": 1, "args": ["buf:out", "u64:{}"]}}]}})",
                                           sms)));
  return {name, "launch:" + file};
}

// Bit s: "SMs 0-1, 4-7" has SM s.
std::uint64_t sms_in(const std::string& account, const std::string& part) {
  const std::size_t at = account.find(part + ": SMs ") + part.size() + 6;
  std::istringstream text(account.substr(at, account.find(';', at) - at));
  std::uint64_t bits = 0;
  for (std::string range; std::getline(text, range, ',');) {
    const std::size_t dash = range.find('-');
    const unsigned long first = std::stoul(range);
    const unsigned long last =
        dash == std::string::npos ? first : std::stoul(range.substr(dash + 1));
    for (unsigned long sm = first; sm <= last; ++sm) bits |= std::uint64_t{1} << sm;
  }
  return bits;
}

TEST_F(ExecutorParts, kernels_stay_on_the_sms_that_the_account_names) {
  fake::FakeConfig config = fake::small_gpu();
  config.tpcs = 20;  // 40 SMs, in 5 GPCs
  for (std::uint32_t t = 0; t < config.tpcs; ++t) {
    config.gpc[t] = t % 5;
    config.bit[t] = 9 * (t % 5) + t / 5;
    config.side[t] = 0;
  }
  test::configure(config);
  const auto executor = open();
  const std::uint64_t all_ones =
      hash_of(std::uint64_t{0}, digest_of(std::vector<std::uint32_t>(64, 1), 0));
  for (const char* mode : {"mask", "affinity"}) {
    SCOPED_TRACE(mode);
    const auto stage = divided(*executor, mode);
    ASSERT_NE(stage, nullptr);
    const std::string account = stage->account();
    const std::uint64_t first = sms_in(account, "part 1/2");
    const std::uint64_t second = sms_in(account, "part 2/2");
    EXPECT_EQ(first & second, 0U);
    EXPECT_EQ(first | second, (std::uint64_t{1} << 40U) - 1);
    for (std::uint32_t part = 0; part < 2; ++part) {
      Lane& lane = stage->lane(part);
      const std::string name = fmt::format("{}_{}", mode, part);
      ASSERT_TRUE(lane.load(staying(name, part == 0 ? first : second)));
      EXPECT_EQ(lane.outputs()->digest, all_ones);
      ASSERT_TRUE(lane.load(staying(name + "_wrong", part == 0 ? second : first)));
      EXPECT_NE(lane.outputs()->digest, all_ones);
    }
  }
}

TEST_F(ExecutorParts, code_is_for_the_highest_target_that_the_card_runs) {
  const auto target = [&](int major, int minor) {
    fake::FakeConfig config = fake::small_gpu();
    config.capability_major = major;
    config.capability_minor = minor;
    test::configure(config);
    const std::string ptx = open()->code_of({"va", "va"})->ptx;
    const std::size_t at = ptx.find(".target ");
    return ptx.substr(at, ptx.find('\n', at) - at);
  };
  const auto highest = [](std::uint32_t most) {
    const auto known = workload::targets_of("vecadd");  // of this build
    return fmt::format(".target sm_{}",
                       *std::prev(std::upper_bound(known.begin(), known.end(), most)));
  };
  EXPECT_EQ(target(9, 0), highest(90));
  EXPECT_EQ(target(8, 6), highest(86));
  EXPECT_EQ(target(7, 9), highest(79));
}

TEST_F(ExecutorParts, modes_that_need_the_hook_come_last) {
  const auto executor = open();
  const auto rank = [&](std::string_view mode) { return executor->rank(parse_modes(mode)->at(0)); };
  EXPECT_LT(rank("green"), rank("mask"));
  EXPECT_LE(rank("green"), rank("none"));
}

TEST_F(ExecutorParts, without_masks_the_description_says_which_colours_there_are) {
  options.masks.clear();
  EXPECT_FALSE(open()->divide(parse_modes("mask+color")->at(0), 2)) << "nothing is known of it";
  options.description = "h100-sxm";
  const auto known = open()->description();
  ASSERT_TRUE(known) << known.error().message;
  const auto stage = open()->divide(parse_modes("mask+color")->at(0), 2);
  EXPECT_TRUE(stage) << stage.error().message;
}

TEST(Clocks, have_names) {
  for (const Clock clock : {Clock::gpu, Clock::events, Clock::requests}) {
    EXPECT_EQ(parse_clock(clock_name(clock)).value(), clock);
  }
  EXPECT_EQ(clock_name(Clock::gpu), "gpu");
  EXPECT_EQ(clock_name(Clock::events), "events");
  EXPECT_EQ(clock_name(Clock::requests), "requests");
  EXPECT_EQ(parse_clock("sun").error().message, "--clock: 'sun' is not gpu, events or requests");
}

}  // namespace
}  // namespace demarc::study
