// The barrier of a cluster, by itself: whom it counts, whom it lets go, and what it orders.
#include <gmock/gmock.h>

#include <bit>
#include <memory>

#include "groups.hpp"
#include "ops/cluster.hpp"

namespace demarc::emulate {
namespace {

// Two blocks of a warp of 32 threads each.
class ClusterBarrier : public testing::Test {
 protected:
  ClusterBarrier() {
    program.block = {32, 1, 1};
    program.functions.resize(1);
    program.functions[0].frame_bytes = 64;
    program.tids.resize(std::size_t{3} * warp_size);
    program.code.resize(20);
    for (std::uint32_t i = 0; i < 2; ++i) {
      blocks[i] = std::make_unique<Block>(program, pool);
      blocks[i]->start(i, false, false);
      blocks[i]->cluster = &cluster;
      cluster.begin(i, *blocks[i]);
    }
  }

  Warp& warp(unsigned block) { return blocks[block]->warps[0]; }
  // Lanes of a block arrive, and wait if they are told to.
  void arrive(unsigned block, Mask lanes, bool wait = false) {
    Warp& w = warp(block);
    w.cluster_pending |= lanes;
    cluster.arrive(static_cast<std::uint32_t>(std::popcount(lanes)));
    if (wait && w.cluster_pending != 0) park(w, 5, lanes, Wait::cluster);
  }
  // Whether the barrier was completed by what `done` does.
  template <class Done>
  bool completes(Done done) {
    const std::uint64_t before = blocks[1]->epoch;
    done();
    return blocks[1]->epoch != before;
  }

  Program program;
  FramePool pool;
  Cluster cluster{2, 64};
  std::unique_ptr<Block> blocks[2];
};

TEST_F(ClusterBarrier, lets_lanes_go_once_all_threads_have_arrived) {
  warp(0).state = WarpState::waiting;
  warp(0).mask = 0;
  arrive(0, 0xff, true);
  arrive(0, 0xffffff00, true);
  park(warp(1), 7, 0xff, Wait::step);
  EXPECT_FALSE(completes([&] { arrive(1, 0x7fffffff); }));
  EXPECT_EQ(warp(0).state, WarpState::waiting);
  EXPECT_EQ(warp(0).groups.size(), 2U);
  const std::uint64_t before = blocks[0]->epoch;
  EXPECT_TRUE(completes([&] { arrive(1, 0x80000000); }));
  EXPECT_GT(blocks[0]->epoch, before) << "the warps of each block are ordered";
  EXPECT_EQ(warp(0).state, WarpState::ready);
  ASSERT_EQ(warp(0).groups.size(), 1U) << "they go on together";
  EXPECT_EQ(warp(0).groups[0].pc, 6U);
  EXPECT_EQ(warp(0).groups[0].mask, full_mask);
  EXPECT_EQ(warp(0).groups[0].wait, Wait::nothing);
  EXPECT_EQ(warp(0).cluster_pending, 0U);
  EXPECT_EQ(warp(1).cluster_pending, 0U);
  ASSERT_EQ(warp(1).groups.size(), 1U);
  EXPECT_EQ(warp(1).groups[0].wait, Wait::step) << "that is another wait";
  EXPECT_FALSE(completes([&] { arrive(1, full_mask); })) << "the next phase expects all again";
  EXPECT_TRUE(completes([&] { arrive(0, full_mask); }));
}

TEST_F(ClusterBarrier, leaves_a_warp_alone_that_waits_as_a_whole_for_its_block) {
  warp(0).state = WarpState::waiting;
  arrive(0, full_mask);
  EXPECT_TRUE(completes([&] { arrive(1, full_mask); }));
  EXPECT_EQ(warp(0).state, WarpState::waiting);
}

TEST_F(ClusterBarrier, counts_no_lanes_that_have_left_whether_they_had_arrived_or_not) {
  arrive(0, 0xff);
  EXPECT_FALSE(completes([&] { cluster.leave(warp(0), 0xfff); }));
  // 52 threads are left, none of which has arrived.
  EXPECT_FALSE(completes([&] { arrive(1, full_mask); }));
  EXPECT_FALSE(completes([&] { arrive(0, 0xffffe000); }));
  EXPECT_TRUE(completes([&] { arrive(0, 0x00001000); }));
}

TEST_F(ClusterBarrier, is_completed_by_the_last_that_leaves_and_only_where_some_have_arrived) {
  arrive(0, 0xff);
  arrive(1, full_mask);
  EXPECT_FALSE(completes([&] { cluster.leave(warp(0), 0x7fffff00); }));
  EXPECT_TRUE(completes([&] { cluster.leave(warp(0), 0x80000000); }));
  EXPECT_FALSE(completes([&] { cluster.leave(warp(0), 0xff); })) << "none has arrived since";
  EXPECT_FALSE(completes([&] { cluster.leave(warp(1), full_mask); }));
}

TEST_F(ClusterBarrier, does_not_wait_for_threads_of_a_block_that_has_ended) {
  arrive(0, full_mask);
  warp(1).live = 0xffff;  // the others have left before
  cluster.leave(warp(1), 0xffff0000);
  ASSERT_EQ(cluster.block(1), blocks[1].get());
  const std::uint64_t before = blocks[0]->epoch;
  EXPECT_FALSE(cluster.end(1));
  EXPECT_GT(blocks[0]->epoch, before) << "those that are left have all arrived";
  EXPECT_EQ(cluster.block(1), nullptr);
  EXPECT_EQ(cluster.block(0), blocks[0].get());
  EXPECT_EQ(cluster.block(2), nullptr);
  EXPECT_EQ(cluster.size(), 2U);
  warp(0).state = WarpState::done;
  EXPECT_TRUE(cluster.end(0)) << "it was the last";
}

// Micro-op 5 arrives or waits.
TEST_F(ClusterBarrier, is_where_lanes_arrive_and_wait_in_turn) {
  Warp& w = warp(0);
  program.instructions.resize(1);
  const MicroOp* const op = program.code.data() + 5;
  w.mask = 0xff;
  ASSERT_EQ(cluster_ops::arrive(w, op), op + 1);
  EXPECT_EQ(w.barriers, 1U);
  EXPECT_EQ(w.cluster_arrived, 0xffU);
  EXPECT_EQ(w.cluster_pending, 0xffU);
  park(w, 9, 0xffffff00);
  ASSERT_EQ(cluster_ops::wait(w, op), program.code.data() + 9) << "the others come";
  EXPECT_EQ(w.mask, 0xffffff00U);
  EXPECT_EQ(w.cluster_arrived, 0U);
  ASSERT_EQ(w.groups.size(), 1U);
  EXPECT_EQ(w.groups[0].wait, Wait::cluster);
  EXPECT_EQ(w.groups[0].pc, 5U);
  EXPECT_EQ(w.groups[0].mask, 0xffU);
  ASSERT_EQ(cluster_ops::arrive(w, op), op + 1);
  EXPECT_EQ(w.cluster_arrived, 0xffffff00U);
  EXPECT_EQ(w.cluster_pending, full_mask);
  EXPECT_TRUE(completes([&] { arrive(1, full_mask); }));
  ASSERT_EQ(cluster_ops::wait(w, op), op + 1) << "all have arrived";
  EXPECT_EQ(w.cluster_arrived, 0U);
  EXPECT_EQ(cluster_ops::wait(w, op), nullptr);
  EXPECT_TRUE(blocks[0]->stopped);
  ASSERT_EQ(blocks[0]->findings.size(), 1U);
  EXPECT_EQ(blocks[0]->findings[0].finding.kind, FindingKind::barrier_divergence);
}

}  // namespace
}  // namespace demarc::emulate
