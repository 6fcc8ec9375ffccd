// When lanes that look at memory let others run: looks that find what was there before are counted.
#include "groups.hpp"

#include <gtest/gtest.h>

#include <cstring>

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

}  // namespace
}  // namespace demarc::emulate
