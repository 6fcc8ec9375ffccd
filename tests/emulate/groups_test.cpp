// When lanes that look at memory let others run: looks that find what was there before are counted.
// What a meeting keeps of the lanes that come to it.
#include "groups.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace demarc::emulate {
namespace {

// Registers of 32 lanes, and the place that remembers what was seen.
class Looks : public testing::Test {
 protected:
  Looks() {
    warp.frame = frame;
    warp.mask = full_mask;
    warp.budget = 1000;
    op.a = 256;
    op.d = 8;
  }

  void put(unsigned lane, std::uint64_t value) {
    std::memcpy(frame + op.a + std::size_t{lane} * op.width, &value, op.width);
  }
  // Whether the look found a change.
  bool look() {
    const std::uint32_t before = warp.polls;
    EXPECT_EQ(control::poll(warp, &op), &op + 1);
    EXPECT_TRUE(warp.polls == 0 || warp.polls == before + 1);
    return warp.polls == 0;
  }

  alignas(64) std::byte frame[256 + 32 * 8 + 64] = {};
  Warp warp;
  MicroOp op;
};

TEST_F(Looks, find_a_change_of_any_lane_that_runs_and_of_no_other) {
  for (const unsigned width : {1U, 2U, 4U, 8U}) {
    op.width = static_cast<std::uint8_t>(width);
    warp.mask = full_mask;
    put(3, 1);
    EXPECT_TRUE(look());
    EXPECT_FALSE(look());
    for (unsigned lane = 0; lane < 32; ++lane) {
      put(lane, 1U + lane);
      EXPECT_TRUE(look()) << lane;
      EXPECT_FALSE(look()) << lane;
      put(lane, (1U + lane) | std::uint64_t{1} << (8U * width - 1));
      EXPECT_TRUE(look()) << lane;
    }
    EXPECT_FALSE(look());
    warp.mask = 0xffff;
    EXPECT_TRUE(look()) << "other lanes";
    put(20, 7);
    EXPECT_FALSE(look());
    put(15, 7);
    EXPECT_TRUE(look());
  }
}

// What lies before the registers of the 32 lanes, and behind them.
TEST_F(Looks, are_at_the_registers_of_the_lanes) {
  op.width = 4;
  look();
  frame[op.a - 1] = std::byte{1};
  frame[op.a + 128] = std::byte{1};
  frame[0] = std::byte{1};
  EXPECT_FALSE(look());
}

TEST_F(Looks, sixteen_times_in_vain_end_the_turn) {
  op.width = 4;
  put(0, 1);
  EXPECT_TRUE(look());
  for (unsigned times = 1; times < 16; ++times) {
    EXPECT_FALSE(look());
    EXPECT_EQ(warp.budget, 1000) << times;
  }
  EXPECT_FALSE(look());
  EXPECT_EQ(warp.budget, 0);
  warp.budget = 1000;
  put(0, 2);
  EXPECT_TRUE(look());
  EXPECT_EQ(warp.budget, 1000);
  EXPECT_FALSE(look());
  EXPECT_EQ(warp.budget, 1000);
}

TEST_F(Looks, end_the_turn_at_once_where_the_kernel_sleeps) {
  EXPECT_EQ(control::yield(warp, &op), &op + 1);
  EXPECT_EQ(warp.budget, 0);
  EXPECT_GE(warp.polls, most_polls);
}

// A block of two warps whose kernel calls one function.
class Meetings : public testing::Test {
 protected:
  Meetings() {
    program.block = {64, 1, 1};
    program.functions.resize(2);
    for (CodeFunction& function : program.functions) function.frame_bytes = 64;
    program.tids.resize(std::size_t{2} * 3 * warp_size);
    program.code.resize(20);
    block = std::make_unique<Block>(program, pool);
    block->start(0, false, false);
  }

  Program program;
  FramePool pool;
  std::unique_ptr<Block> block;
  alignas(64) std::byte frames[2][64] = {};
};

TEST_F(Meetings, keep_where_the_lanes_were_and_take_them_back_there) {
  Warp& w = block->warps[1];
  w.frame = frames[0];
  w.mask = 0xfff0;
  w.top_join = 5;
  w.function = 1;
  w.local_base = 48;
  Meeting& outer = open_meeting(w, 7);
  EXPECT_EQ(outer.pc, 7U);
  EXPECT_EQ(outer.join, 5U);
  EXPECT_EQ(outer.mask, 0xfff0U);
  EXPECT_EQ(outer.arrived, 0U);
  EXPECT_EQ(outer.outer, nullptr);
  ASSERT_EQ(outer.frame, frames[0]);
  EXPECT_EQ(outer.function, 1U);
  EXPECT_EQ(outer.local_base, 48U);
  EXPECT_EQ(outer.callee_frame, nullptr);
  EXPECT_EQ(outer.depth, 0U);
  EXPECT_EQ(w.meeting, &outer);
  outer.depth = 3;
  w.frame = frames[1];
  w.mask = 0xff00;
  w.top_join = 9;
  w.function = 0;
  w.local_base = 16;
  Meeting& inner = open_meeting(w, 11);
  EXPECT_NE(&inner, &outer);
  EXPECT_EQ(inner.outer, &outer);
  ASSERT_EQ(inner.frame, frames[1]);
  EXPECT_EQ(inner.function, 0U);
  EXPECT_EQ(inner.depth, 3U) << "of the calls around it";

  // All come to the inner one, and are where they were.
  w.frame = frames[0];
  w.top_join = 1;
  w.function = 1;
  w.local_base = 0;
  EXPECT_EQ(meet(w), program.code.data() + 11);
  EXPECT_EQ(w.frame, frames[1]);
  EXPECT_EQ(w.mask, 0xff00U);
  EXPECT_EQ(w.top_join, 9U);
  EXPECT_EQ(w.function, 0U);
  EXPECT_EQ(w.local_base, 16U);
  EXPECT_EQ(w.meeting, &outer);

  // The next one is in the place of the one that is over, and has nothing of it.
  w.mask = 0xf00;
  Meeting& again = open_meeting(w, 12);
  EXPECT_EQ(&again, &inner);
  EXPECT_EQ(again.mask, 0xf00U);
  EXPECT_EQ(again.arrived, 0U);
  EXPECT_EQ(again.outer, &outer);
}

TEST_F(Meetings, go_on_once_all_that_are_to_come_have) {
  Warp& w = block->warps[0];
  w.frame = frames[0];
  w.mask = 0xff;
  Meeting& meeting = open_meeting(w, 7);
  park(w, 3, 0xf0);
  w.mask = 0xf;
  EXPECT_EQ(meet(w), program.code.data() + 3) << "the others come first";
  EXPECT_EQ(meeting.arrived, 0xfU);
  EXPECT_EQ(w.mask, 0xf0U);
  EXPECT_EQ(meet(w), program.code.data() + 7);
  EXPECT_EQ(w.mask, 0xffU);
  EXPECT_EQ(w.meeting, nullptr);
}

}  // namespace
}  // namespace demarc::emulate
