// What a block is when it starts, whatever ran in it before, and where its threads and its memory
// lie.
#include <gmock/gmock.h>

#include <algorithm>

#include "started_block.hpp"
#include "unwritten.hpp"

namespace demarc::emulate {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(StartedBlock, has_its_place_in_the_grid) {
  Block block(program, pool);
  block.start(0, false, false);
  EXPECT_THAT(block.index, ElementsAre(0, 0, 0));
  block.start(4, false, false);
  EXPECT_THAT(block.index, ElementsAre(4, 0, 0));
  block.start(5 * 2 + 3, false, false);
  EXPECT_THAT(block.index, ElementsAre(3, 2, 0));
  block.start(29, false, false);
  EXPECT_THAT(block.index, ElementsAre(4, 2, 1));
  EXPECT_EQ(block.linear, 29U);
}

TEST_F(StartedBlock, has_all_of_its_shared_memory_and_room_for_what_it_traces) {
  program.check_races = true;
  for (const bool follows : {false, true}) {
    program.check_uninitialised = follows;
    Block block(program, pool);
    block.start(0, true, true);
    ASSERT_EQ(block.shared.size(), program.shared_bytes + 64U) << "wide accesses reach beyond it";
    EXPECT_EQ(block.shared_region.low, 0U);
    EXPECT_EQ(block.shared_region.high, program.shared_bytes);
    EXPECT_EQ(block.shared_region.delta, reinterpret_cast<std::uint64_t>(block.shared.data()));
    EXPECT_EQ(block.shared_region.shadow, follows ? block.shared_shadow.data() : nullptr);
    if (follows) {
      ASSERT_EQ(block.shared_shadow.size(), block.shared.size());
      EXPECT_NE(block.shared_region.shadow, nullptr);
    }
    for (const auto* records : {&block.races.writes, &block.races.reads, &block.races.strong_writes,
                                &block.races.strong_reads}) {
      EXPECT_EQ(records->size(), program.shared_bytes / program.shared_granule + 1);
    }
    std::uint64_t* const first = block.trace_room(20'000);
    ASSERT_GE(block.trace.size(), 20'000U);
    EXPECT_EQ(first, block.trace.data());
    block.trace[19'999] = 7;
    std::uint64_t* const second = block.trace_room(30'000);
    ASSERT_GE(block.trace.size(), 50'000U);
    EXPECT_EQ(second, block.trace.data() + 20'000);
    EXPECT_EQ(second[-1], 7U) << "what was traced stays";
  }
}

TEST_F(StartedBlock, has_the_threads_of_its_last_warp_and_no_more) {
  for (const auto& [threads, live] : std::vector<std::pair<std::uint32_t, Mask>>{
           {33, 1}, {50, 0x3ffff}, {63, 0x7fffffff}, {64, full_mask}}) {
    program.block = {threads, 1, 1};
    Block block(program, pool);
    block.start(0, false, false);
    ASSERT_EQ(block.warps.size(), 2U);
    EXPECT_EQ(block.warps[0].live, full_mask);
    EXPECT_EQ(block.warps[1].live, live) << threads;
    EXPECT_EQ(block.warps[1].mask, live);
    EXPECT_EQ(block.warps[1].index, 1U);
    EXPECT_EQ(block.warps[1].block, &block);
    EXPECT_EQ(block.warps[1].program, &program);
    EXPECT_EQ(block.warps[1].check_races, program.check_races);
    EXPECT_EQ(block.barriers.size(), 16U);
    EXPECT_EQ(block.warps[1].tid[2], program.tids.data() + 5 * warp_size);
    EXPECT_EQ(block.running, 2U);
  }
}

// A block that a trap or a hang stopped leaves all of this behind.
TEST_F(StartedBlock, keeps_nothing_of_the_one_before) {
  program.tables = baseline::tables();
  program.orders_warps = true;
  Block block(program, pool);
  block.start(3, true, true);
  block.clocks.write(0, 5, 9, true, false);
  block.trace_used = 9;
  block.trace_warp = 1;
  block.findings.emplace_back();
  block.printed = "before";
  block.unwritten = std::make_unique<Unwritten>(block);
  block.stopped = true;
  block.stalled = true;
  block.vain_rounds = 99;
  block.running = 0;
  block.executed = 1000;
  std::fill(block.shared.begin(), block.shared.end(), std::byte{1});
  std::fill(block.shared_shadow.begin(), block.shared_shadow.end(), std::uint8_t{1});
  block.grow_local(500);
  std::fill(block.local_shadow.begin(), block.local_shadow.end(), std::uint8_t{1});
  BarrierState& barrier = block.barriers[4];
  barrier.in_use = true;
  barrier.arrived = 1;
  barrier.expected = 64;
  barrier.reduction_count = 3;
  barrier.reduction_and = false;
  barrier.reduction_or = true;
  const std::uint64_t epoch = block.epoch;
  Warp& warp = block.warps[1];
  warp.state = WarpState::done;
  warp.live = 0;
  warp.mask = 0;
  warp.top_join = 5;
  warp.function = 1;
  warp.local_base = 64;
  warp.meeting = &warp.meetings.emplace_back();
  warp.spare_meeting = &warp.meetings.emplace_back();
  warp.groups.emplace_back();
  warp.kernel_frame = pool.take(program.functions[0]);
  std::byte* const frame = warp.kernel_frame;
  warp.resume = 33;
  warp.torn = true;
  warp.polls = 3;
  warp.idle_turns = 3;
  warp.turned = 3;
  warp.carry = 3;
  warp.tracked = true;
  warp.begins = true;
  warp.cluster_arrived = 3;
  warp.cluster_pending = 3;
  warp.thread_instructions = 3;
  warp.warp_instructions = 3;
  warp.memory_accesses = 3;
  warp.divergent_branches = 3;
  warp.barriers = 3;

  block.start(4, false, false);
  EXPECT_EQ(block.trace_used, 0U);
  EXPECT_EQ(block.trace_warp, ~0U);
  EXPECT_THAT(block.findings, IsEmpty());
  EXPECT_EQ(block.printed, "");
  EXPECT_EQ(block.unwritten, nullptr);
  EXPECT_FALSE(block.stopped);
  EXPECT_FALSE(block.stalled);
  EXPECT_EQ(block.vain_rounds, 0U);
  EXPECT_EQ(block.running, 2U);
  EXPECT_EQ(block.executed, 0U);
  EXPECT_THAT(block.shared, Each(std::byte{0}));
  EXPECT_THAT(block.shared_shadow, Each(0));
  EXPECT_THAT(block.local_shadow, Each(0));
  EXPECT_EQ(block.local_end, 40U);
  EXPECT_FALSE(barrier.in_use);
  EXPECT_EQ(barrier.arrived, 0U);
  EXPECT_EQ(barrier.expected, 0U);
  EXPECT_EQ(barrier.reduction_count, 0U);
  EXPECT_TRUE(barrier.reduction_and);
  EXPECT_FALSE(barrier.reduction_or);
  EXPECT_GT(block.epoch, epoch) << "what was touched before is ordered before what comes";
  EXPECT_EQ(block.unordered_epoch, block.epoch);
  block.clocks.read(1, 5, true);
  EXPECT_FALSE(block.clocks.ordered(1, 0, 9));
  EXPECT_EQ(warp.state, WarpState::ready);
  EXPECT_EQ(warp.live, 0x3ffffU);
  EXPECT_EQ(warp.mask, 0x3ffffU);
  EXPECT_EQ(warp.top_join, no_join);
  EXPECT_EQ(warp.function, 0U);
  EXPECT_EQ(warp.local_base, 0U);
  EXPECT_EQ(warp.meeting, nullptr);
  EXPECT_EQ(warp.spare_meeting, nullptr);
  EXPECT_TRUE(warp.meetings.empty());
  EXPECT_TRUE(warp.groups.empty());
  EXPECT_EQ(warp.kernel_frame, nullptr);
  EXPECT_EQ(pool.take(program.functions[0]), frame) << "the frame is free again";
  EXPECT_EQ(warp.resume, 7U);
  EXPECT_FALSE(warp.torn);
  EXPECT_EQ(warp.polls, 0U);
  EXPECT_EQ(warp.idle_turns, 0U);
  EXPECT_EQ(warp.turned, 0U);
  EXPECT_EQ(warp.carry, 0U);
  EXPECT_FALSE(warp.tracked);
  EXPECT_FALSE(warp.begins);
  EXPECT_EQ(warp.cluster_arrived, 0U);
  EXPECT_EQ(warp.cluster_pending, 0U);
  EXPECT_FALSE(warp.tracing);
  EXPECT_FALSE(warp.trace_runs);
  EXPECT_EQ(warp.thread_instructions, 0U);
  EXPECT_EQ(warp.warp_instructions, 0U);
  EXPECT_EQ(warp.memory_accesses, 0U);
  EXPECT_EQ(warp.divergent_branches, 0U);
  EXPECT_EQ(warp.barriers, 0U);
}

TEST_F(StartedBlock, hands_its_trace_on_when_there_is_no_room_for_more) {
  Block block(program, pool);
  block.start(0, true, true);
  unsigned times = 0;
  block.flush = [&](Block& full) {
    EXPECT_EQ(&full, &block);
    ++times;
    full.trace_used = 0;
  };
  ASSERT_NE(block.trace_room(20'000), nullptr);
  const std::size_t room = block.trace.size();
  ASSERT_NE(block.trace_room(room - 20'000), nullptr);
  EXPECT_EQ(times, 1U) << "there was none at first";
  EXPECT_EQ(block.trace_room(20'000), block.trace.data());
  EXPECT_EQ(times, 2U);
  EXPECT_EQ(block.trace_used, 20'000U);
  EXPECT_EQ(block.trace.size(), room) << "it is used again";
}

TEST_F(StartedBlock, remembers_for_each_memory_access_of_the_kernel_where_it_went) {
  program.memory_sites = 3;
  Block block(program, pool);
  ASSERT_EQ(block.hints.size(), 3U);
  for (const AccessHint& hint : block.hints) EXPECT_EQ(hint.region, nullptr);
}

TEST_F(StartedBlock, has_records_of_races_for_each_warp_where_warps_are_ordered) {
  program.orders_warps = true;
  program.shared_granule = 8;
  Block block(program, pool);
  EXPECT_TRUE(block.clocks.used());
  EXPECT_EQ(block.races.writes.size(), (100U / 8 + 1) * 2);
  program.check_races = false;
  Block unchecked(program, pool);
  EXPECT_FALSE(unchecked.clocks.used());
  EXPECT_THAT(unchecked.races.writes, IsEmpty());
}

TEST_F(StartedBlock, has_threads_in_three_dimensions) {
  program.block = {5, 2, 5};
  Block block(program, pool);
  block.start(0, false, false);
  ASSERT_EQ(block.warps.size(), 2U);
  EXPECT_EQ(block.warps[0].live, full_mask);
  EXPECT_EQ(block.warps[1].live, 0x3ffffU);
}

TEST_F(StartedBlock, has_no_local_memory_where_its_kernel_declares_none) {
  program.functions[0].local_bytes = 0;
  Block block(program, pool);
  block.start(0, false, false);
  EXPECT_EQ(block.local_end, 0U);
  EXPECT_THAT(block.local, IsEmpty());
}

TEST_F(StartedBlock, traces_what_it_is_told_to) {
  Block block(program, pool);
  for (const bool tracing : {false, true}) {
    for (const bool runs : {false, true}) {
      block.start(0, tracing, runs);
      EXPECT_EQ(block.warps[1].tracing, tracing);
      EXPECT_EQ(block.warps[1].trace_runs, runs);
    }
  }
}

TEST_F(StartedBlock, keeps_what_its_threads_have_in_local_memory_when_that_grows) {
  Block block(program, pool);
  block.start(0, false, false);
  ASSERT_EQ(block.local_bytes, 64U) << "a multiple of 64";
  ASSERT_EQ(block.local.size(), std::size_t{64} * 64 + 64);
  ASSERT_EQ(block.local_shadow.size(), block.local.size());
  const auto byte_of = [&](std::size_t warp, std::size_t lane, std::size_t at) {
    const Region region = block.local_region(block.warps[warp]);
    return std::pair{reinterpret_cast<std::uint8_t*>(region.delta) + lane * block.local_bytes + at,
                     region.shadow + lane * block.local_bytes + at};
  };
  for (std::size_t thread = 0; thread < 64; ++thread) {
    const auto [value, shadow] = byte_of(thread / 32, thread % 32, 39);
    *value = static_cast<std::uint8_t>(thread);
    *shadow = wholly_written;
  }
  block.grow_local(300);
  ASSERT_EQ(block.local_bytes, 320U);
  ASSERT_EQ(block.local.size(), std::size_t{64} * 320 + 64);
  ASSERT_EQ(block.local_shadow.size(), block.local.size());
  EXPECT_EQ(block.local_end, 300U);
  EXPECT_EQ(block.local_region(block.warps[1]).high, 300U);
  for (std::size_t thread = 0; thread < 64; ++thread) {
    const auto [value, shadow] = byte_of(thread / 32, thread % 32, 39);
    EXPECT_EQ(*value, thread);
    EXPECT_EQ(*shadow, wholly_written);
    EXPECT_EQ(*byte_of(thread / 32, thread % 32, 299).second, 0);
  }
  block.grow_local(8);
  EXPECT_EQ(block.local_end, 300U) << "what other calls have declared stays";
  const std::byte* const place = block.local.data();
  block.grow_local(320);
  EXPECT_EQ(block.local.data(), place) << "there are as many bytes already";
  EXPECT_EQ(block.local_end, 320U);
}

TEST(Frames, lie_at_multiples_of_64_and_hold_the_constants_of_their_function) {
  CodeFunction function;
  function.frame_bytes = 200;
  function.constants = {{8, 0x1122334455667788}, {192, 99}};
  CodeFunction other;
  other.frame_bytes = 8;
  FramePool pool;
  std::byte* const first = pool.take(function);
  std::byte* const second = pool.take(function);
  EXPECT_NE(first, second);
  for (std::byte* const frame : {first, second}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame) % 64, 0U);
    std::uint64_t words[2];
    std::memcpy(&words[0], frame + 8, 8);
    std::memcpy(&words[1], frame + 192, 8);
    EXPECT_THAT(words, ElementsAre(0x1122334455667788, 99));
  }
  pool.give_back(function, first);
  EXPECT_NE(pool.take(other), first);
  EXPECT_EQ(pool.take(function), first);
  EXPECT_NE(pool.take(function), first);
}

// Buffers of an allocation lie apart, and each is as long as it says.
TEST(Regions, are_found_for_what_lies_in_one_of_them_as_a_whole) {
  Program program;
  program.regions = {
      {.low = 100, .high = 200}, {.low = 200, .high = 250}, {.low = 300, .high = 304}};
  const auto low_of = [&](std::uint64_t low, std::uint64_t high) {
    const Region* const found = program.find_region(low, high);
    return found != nullptr ? found->low : 0;
  };
  EXPECT_EQ(low_of(100, 101), 100U);
  EXPECT_EQ(low_of(199, 200), 100U);
  EXPECT_EQ(low_of(200, 250), 200U);
  EXPECT_EQ(low_of(300, 304), 300U);
  for (const auto& [low, high] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{{99, 101},
                                                                                      {0, 4},
                                                                                      {199, 201},
                                                                                      {249, 251},
                                                                                      {250, 254},
                                                                                      {299, 300},
                                                                                      {304, 308},
                                                                                      {150, 150},
                                                                                      {150, 140}}) {
    EXPECT_EQ(low_of(low, high), 0U) << low << " " << high;
  }
}

}  // namespace
}  // namespace demarc::emulate
