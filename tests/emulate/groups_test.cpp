// When lanes that look at memory let others run: looks that find what was there before are counted.
// What a meeting keeps of the lanes that come to it, and which group of lanes comes next.
#include "groups.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "ops/warp.hpp"

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
  EXPECT_GE(warp.polls, max_polls);
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

TEST_F(Meetings, are_held_in_spare_places_first) {
  Warp& w = block->warps[0];
  w.frame = frames[0];
  Meeting& first = w.meetings.emplace_back();
  Meeting& second = w.meetings.emplace_back();
  first.outer = &second;
  w.spare_meeting = &first;
  ASSERT_EQ(&open_meeting(w, 7), &first);
  ASSERT_EQ(w.spare_meeting, &second);
  ASSERT_EQ(&open_meeting(w, 8), &second);
  EXPECT_EQ(w.spare_meeting, nullptr);
  EXPECT_EQ(w.meetings.size(), 2U);
}

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
  inner.uniforms = std::make_unique<Uniforms>();
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
  EXPECT_EQ(again.uniforms, nullptr);
}

TEST_F(Meetings, to_which_none_comes_any_more_are_spare) {
  Warp& w = block->warps[0];
  w.frame = frames[0];
  Meeting& meeting = open_meeting(w, 7);
  meeting.mask = 0;
  w.mask = 0;
  EXPECT_EQ(leave_meetings(w), nullptr);
  EXPECT_EQ(w.meeting, nullptr);
  EXPECT_EQ(w.spare_meeting, &meeting);
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

// Since then the others have had no turn.
TEST_F(Meetings, note_when_all_lanes_ran_last) {
  Warp& w = block->warps[0];
  w.frame = frames[0];
  w.warp_instructions = 40;
  open_meeting(w, 7);
  EXPECT_EQ(w.turned, 40U);
  w.warp_instructions = 50;
  park(w, 3, 0xffff);
  w.mask = 0xffff0000;
  open_meeting(w, 8);
  EXPECT_EQ(w.turned, 40U) << "only some";
  w.torn = true;
  w.warp_instructions = 60;
  EXPECT_EQ(meet(w), program.code.data() + 8);
  EXPECT_EQ(w.turned, 40U);
  EXPECT_TRUE(w.torn);
  w.warp_instructions = 70;
  EXPECT_EQ(meet(w), program.code.data() + 3) << "the others come first";
  EXPECT_EQ(w.turned, 70U);
  w.warp_instructions = 80;
  EXPECT_EQ(meet(w), program.code.data() + 7);
  EXPECT_EQ(w.turned, 80U);
  EXPECT_FALSE(w.torn) << "all are together again";
}

// As a warp begins: no meeting, and all its lanes run.
class Groups : public Meetings {
 protected:
  Groups() : w(block->warps[0]) { w.frame = frames[0]; }

  [[nodiscard]] const MicroOp* at(std::size_t place) const { return program.code.data() + place; }

  Warp& w;
};

TEST_F(Groups, come_one_after_the_other_the_last_first_and_those_that_wait_do_not) {
  for (const bool torn : {false, true}) {
    block->start(0, false, false);
    w.frame = frames[0];
    w.torn = torn;
    park(w, 3, 0xf);
    park(w, 4, 0xf0);
    park(w, 5, 0xf00, Wait::barrier);
    w.warp_instructions = 30;
    ASSERT_EQ(next_group(w), at(4));
    EXPECT_EQ(w.turned, 30U);
    EXPECT_EQ(w.mask, 0xf0U);
    EXPECT_EQ(w.frame, frames[0]);
    ASSERT_EQ(w.groups.size(), 2U);
    ASSERT_EQ(next_group(w), at(3));
    EXPECT_EQ(w.mask, 0xfU);
    ASSERT_EQ(w.groups.size(), 1U);
    EXPECT_EQ(next_group(w), nullptr);
    EXPECT_EQ(w.state, WarpState::waiting);
    EXPECT_EQ(w.mask, 0U);
    EXPECT_EQ(block->running, 2U);
    w.groups.clear();
    EXPECT_EQ(next_group(w), nullptr);
    EXPECT_EQ(w.state, WarpState::done);
    EXPECT_EQ(block->running, 1U);
  }
}

TEST_F(Groups, that_can_run_are_left_where_the_block_is_stopped) {
  park(w, 3, 0xf);
  block->stopped = true;
  EXPECT_EQ(next_group(w), nullptr);
  EXPECT_EQ(w.groups.size(), 1U);
}

TEST_F(Groups, take_turns_each_in_its_turn) {
  w.mask = 0xf;
  w.resume = 6;
  park(w, 3, 0xf0);
  park(w, 4, 0xfffff00);
  w.live = 0xfffffff;
  std::vector<std::uint32_t> turns;
  for (unsigned i = 0; i < 4; ++i) {
    w.warp_instructions += 10;
    take_turns(w, false);
    EXPECT_EQ(w.turned, w.warp_instructions);
    ASSERT_EQ(w.groups.size(), 2U);
    turns.push_back(w.resume);
  }
  EXPECT_EQ(turns, (std::vector<std::uint32_t>{4, 3, 6, 4}));
  EXPECT_EQ(w.mask, 0xfffff00U);
  w.groups.clear();
  w.mask = w.live;
  w.turned = 5;
  take_turns(w, true);
  EXPECT_EQ(w.resume, 4U) << "all lanes run";
  EXPECT_EQ(w.turned, 5U) << "no others have had a turn";
  EXPECT_TRUE(w.groups.empty());
}

TEST_F(Groups, at_one_place_are_one_unless_they_wait_or_differ) {
  Meeting meeting;
  park(w, 3, 0x1);
  park(w, 4, 0x2);
  park(w, 3, 0x4);
  park(w, 3, 0x8, Wait::barrier);
  park(w, 3, 0x10).frame = frames[1];
  park(w, 3, 0x20).meeting = &meeting;
  park(w, 3, 0x40).top_join = 9;
  park(w, 3, 0x80).uniforms = std::make_unique<Uniforms>(1, 5);
  park(w, 3, 0x100).uniforms = std::make_unique<Uniforms>(1, 5);
  park(w, 3, 0x200).uniforms = std::make_unique<Uniforms>(1, 6);
  park(w, 4, 0x400);
  unite(w);
  std::vector<Mask> masks;
  for (const Group& group : w.groups) masks.push_back(group.mask);
  EXPECT_EQ(masks, (std::vector<Mask>{0x1 | 0x4, 0x2 | 0x400, 0x8, 0x10, 0x20, 0x40, 0x80 | 0x100,
                                      0x200}));
}

TEST_F(Groups, behind_those_that_wait_come_as_well) {
  for (const bool torn : {false, true}) {
    block->start(0, false, false);
    w.frame = frames[0];
    w.torn = torn;
    w.warp_instructions = 30;
    park(w, 3, 0xf);
    park(w, 5, 0xf00, Wait::barrier);
    park(w, 6, 0xf0);
    park(w, 7, 0xf000, Wait::cluster);
    ASSERT_EQ(next_group(w), at(6));
    EXPECT_EQ(w.mask, 0xf0U);
    EXPECT_EQ(w.turned, 30U);
    ASSERT_EQ(w.groups.size(), 3U);
    ASSERT_EQ(next_group(w), at(3));
    ASSERT_EQ(w.groups.size(), 2U);
    EXPECT_EQ(w.groups[0].pc, 5U);
    EXPECT_EQ(w.groups[1].pc, 7U);
  }
}

TEST_F(Groups, go_on_without_those_for_which_they_wait_at_the_innermost_meeting_where_any_does) {
  EXPECT_FALSE(go_on_apart(w)) << "there are none";
  Meeting& outer = open_meeting(w, 9);
  Meeting& inner = open_meeting(w, 8);
  park(w, 3, 0xff, Wait::step);
  w.mask = 0;
  w.state = WarpState::waiting;
  EXPECT_FALSE(go_on_apart(w)) << "none waits at a meeting";
  EXPECT_FALSE(w.torn);
  EXPECT_EQ(w.state, WarpState::waiting);
  outer.arrived = 0xf0000;
  ASSERT_TRUE(go_on_apart(w));
  EXPECT_TRUE(w.torn);
  EXPECT_EQ(w.state, WarpState::ready);
  ASSERT_EQ(w.groups.size(), 2U);
  EXPECT_EQ(w.groups[1].pc, 9U);
  EXPECT_EQ(w.groups[1].mask, 0xf0000U);
  EXPECT_EQ(w.groups[1].meeting, nullptr);
  EXPECT_EQ(w.groups[1].wait, Wait::nothing);
  EXPECT_EQ(outer.mask, ~Mask{0xf0000});
  EXPECT_EQ(outer.arrived, 0U);
  inner.arrived = 0xf00;
  outer.arrived = 0xf000;
  w.groups.pop_back();
  w.groups[0].uniforms = std::make_unique<Uniforms>(1, 5);
  ASSERT_TRUE(go_on_apart(w));
  EXPECT_EQ(w.groups.back().pc, 8U) << "the innermost first";
  EXPECT_EQ(w.groups.back().mask, 0xf00U);
  EXPECT_EQ(w.groups.back().meeting, &outer);
  EXPECT_EQ(*w.groups[0].uniforms, Uniforms(1, 5)) << "as they were since they went apart";
}

TEST_F(Groups, go_on_without_others_at_once_where_all_wait_for_lanes_of_their_warp) {
  for (const Wait wait : {Wait::step, Wait::members, Wait::barrier, Wait::cluster}) {
    block->start(0, false, false);
    w.frame = frames[0];
    open_meeting(w, 9).arrived = 0xf;
    park(w, 3, 0xf0, Wait::members);
    park(w, 4, 0xf00, wait);
    const bool within = wait == Wait::step || wait == Wait::members;
    EXPECT_EQ(next_group(w), within ? at(9) : nullptr);
    EXPECT_EQ(w.state, within ? WarpState::ready : WarpState::waiting);
    EXPECT_EQ(w.torn, within);
  }
}

TEST_F(Groups, are_apart_no_more_once_one_of_all_lanes_comes) {
  w.torn = true;
  park(w, 3, full_mask);
  ASSERT_EQ(next_group(w), at(3));
  EXPECT_FALSE(w.torn);
}

TEST_F(Groups, wait_at_a_step_unless_all_lanes_run) {
  EXPECT_EQ(control::step(w, at(3)), at(4));
  EXPECT_TRUE(w.groups.empty());
  park(w, 7, 0xffff);
  w.mask = 0xffff0000;
  ASSERT_EQ(control::step(w, at(3)), at(7)) << "the others come";
  ASSERT_EQ(w.groups.size(), 1U);
  EXPECT_EQ(w.groups[0].wait, Wait::step);
  EXPECT_EQ(w.groups[0].pc, 3U);
  EXPECT_EQ(w.groups[0].mask, 0xffff0000U);
  ASSERT_EQ(control::step(w, at(3)), at(4)) << "all are there";
  EXPECT_EQ(w.mask, full_mask);
  EXPECT_TRUE(w.groups.empty());
}

// At a step all lanes come together; at a collective those of the member mask, apart from those
// that have exited.
TEST_F(Groups, go_on_once_all_are_there_that_they_wait_for) {
  WarpDetails details;
  details.operation = WarpOperation::synchronize;
  details.members = 0;
  program.code[3].aux = &details;
  program.code[5].aux = &details;
  const auto waits = [&] {
    settle(w);
    std::vector<std::pair<std::uint32_t, bool>> all;
    for (const Group& group : w.groups) all.emplace_back(group.pc, group.wait != Wait::nothing);
    return all;
  };
  using Places = std::vector<std::pair<std::uint32_t, bool>>;
  w.mask = 0xff000000;
  park(w, 3, 0xff, Wait::step);
  park(w, 3, 0xff00, Wait::step);
  EXPECT_EQ(waits(), (Places{{3, true}, {3, true}}));
  EXPECT_EQ(w.mask, 0xff000000U) << "what runs stays";
  w.live = 0xffff;
  EXPECT_EQ(waits(), (Places{{4, false}})) << "and they are one";
  w.groups.clear();
  w.live = full_mask;
  park(w, 3, 0xf, Wait::members).members = 0xffff;
  park(w, 5, 0xf0, Wait::members).members = 0xffff;
  park(w, 3, 0xff0000, Wait::members).members = 0xff0000;
  EXPECT_EQ(waits(), (Places{{3, true}, {5, true}, {4, false}}));
  w.live = ~Mask{0xff00};
  EXPECT_EQ(waits(), (Places{{4, false}, {6, false}})) << "the first and the last are one";
}

}  // namespace
}  // namespace demarc::emulate
