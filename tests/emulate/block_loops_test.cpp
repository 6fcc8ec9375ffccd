// Which blocks are there at once, in which order they run, and when more of them begin.
#include "block_loops.hpp"

#include <gmock/gmock.h>

#include "groups.hpp"
#include "ops/control.hpp"

namespace demarc::emulate {
namespace {

using testing::ElementsAre;

// What the blocks of the kernel do, turn by turn: they look at memory.
struct TurnLog {
  std::vector<std::uint32_t> blocks;  // that had a turn, one after the other
  std::vector<unsigned> until_end;    // turns that each block has left
  bool in_vain = false;
};
TurnLog turn_log;
Collector* failing = nullptr;

const MicroOp* look_at_memory(Warp& w, const MicroOp* op) {
  const std::uint32_t block = w.block->linear;
  turn_log.blocks.push_back(block);
  ++w.warp_instructions;
  if (--turn_log.until_end[block] == 0) return control::exit_lanes(w, op);
  w.polls = turn_log.in_vain ? max_polls : 0;
  return nullptr;
}

class BlocksInTurns : public testing::Test {
 protected:
  BlocksInTurns() {
    program.kernel = "k";
    program.grid = {8, 1, 1};
    program.block = {32, 1, 1};
    program.tids.resize(std::size_t{3} * warp_size);
    program.functions.resize(1);
    program.functions[0].frame_bytes = 64;
    program.instructions.resize(1);
    program.code.resize(1);
    program.code[0].run = look_at_memory;
    program.instruction_limit = 1000;
  }

  // The turns of blocks that each have so many.
  std::vector<std::uint32_t> turns(const std::vector<unsigned>& of_each, Residents resident,
                                   bool in_vain) {
    turn_log = {.blocks = {}, .until_end = of_each, .in_vain = in_vain};
    outcome = {};
    outcome.kernels.emplace_back();
    shares.clear();
    Collector collector(nullptr, outcome, 10, 2);
    const Progress progress = [this](double share, std::string_view) { shares.push_back(share); };
    const auto blocks = static_cast<std::uint32_t>(of_each.size());
    run_in_turns(program, collector, blocks, resident, {}, progress);
    std::vector<double> wanted;
    for (std::uint32_t i = 0; i < blocks && !collector.over(); ++i)
      wanted.push_back(static_cast<double>(i + 1) / blocks);
    if (!collector.over()) {
      EXPECT_EQ(shares, wanted) << "each block is collected once, in order";
    }
    return turn_log.blocks;
  }

  Program program;
  Outcome outcome;
  std::vector<double> shares;
};

TEST_F(BlocksInTurns, come_one_after_the_other_where_one_is_there_at_once) {
  EXPECT_THAT(turns({3, 2, 1, 2}, {1, 1}, false), ElementsAre(0, 0, 0, 1, 1, 2, 3, 3));
  EXPECT_EQ(outcome.kernels[0].warp_instructions, 8U);
  EXPECT_THAT(turns({3, 2, 1, 2}, {1, 8}, false), ElementsAre(0, 0, 0, 1, 1, 2, 3, 3))
      << "none of them looks in vain";
  EXPECT_THAT(turns({1}, {1, 1}, false), ElementsAre(0));
}

// One more begins in each round.
TEST_F(BlocksInTurns, take_turns_where_several_are_there_at_once) {
  EXPECT_THAT(turns({4, 2, 2, 1}, {2, 2}, false), ElementsAre(0, 0, 1, 0, 1, 0, 2, 2, 3));
  EXPECT_THAT(turns({4, 4, 4}, {8, 8}, false), ElementsAre(0, 0, 1, 0, 1, 2, 0, 1, 2, 1, 2, 2));
}

// A block that ends behind others is collected when these have ended.
TEST_F(BlocksInTurns, are_collected_in_the_order_of_their_numbers) {
  turns({9, 2, 1, 2}, {2, 2}, false);
  EXPECT_THAT(shares, ElementsAre(0.25, 0.5, 0.75, 1.0));
}

// One worker takes eight together. While it runs the second of them, another one fails.
TEST_F(BlocksInTurns, are_not_started_once_a_worker_has_failed) {
  turn_log = {};
  outcome.kernels.emplace_back();
  Collector collector(nullptr, outcome, 10, 2);
  failing = &collector;
  program.code[0].run = [](Warp& w, const MicroOp* op) {
    turn_log.blocks.push_back(w.block->linear);
    if (w.block->linear == 1) failing->abandon(nullptr);
    return control::exit_lanes(w, op);
  };
  const Progress progress;
  BlockWork work{
      .program = program, .collector = collector, .blocks = 8, .at_once = 8, .progress = progress};
  run_blocks(work);
  EXPECT_THAT(turn_log.blocks, ElementsAre(0, 1));
}

// The second round in vain brings others, twice as many as there are: first 1, then 2.
TEST_F(BlocksInTurns, are_joined_by_others_where_all_look_in_vain_twice) {
  EXPECT_THAT(turns({4, 3, 2, 2}, {1, 8}, true), ElementsAre(0, 0, 0, 1, 0, 1, 2, 3, 1, 2, 3));
  EXPECT_THAT(turns({5, 9, 9, 9}, {1, 2}, true).size(), 32U);
}

// It looks in vain in its first turn alone, and works on in those behind.
TEST_F(BlocksInTurns, are_not_joined_by_others_where_one_looked_in_vain_once) {
  program.code[0].run = [](Warp& w, const MicroOp* op) -> const MicroOp* {
    const std::uint32_t block = w.block->linear;
    turn_log.blocks.push_back(block);
    ++w.warp_instructions;
    if (turn_log.until_end[block]-- == 4) w.polls = max_polls;
    return turn_log.until_end[block] == 0 ? control::exit_lanes(w, op) : nullptr;
  };
  EXPECT_THAT(turns({4, 1}, {1, 8}, false), ElementsAre(0, 0, 0, 0, 1));
}

TEST_F(BlocksInTurns, are_not_joined_by_others_in_a_round_in_which_one_has_ended) {
  // In the fourth round block 0 ends: block 2 begins once block 1 has looked in vain twice since.
  EXPECT_THAT(turns({3, 4, 2, 2}, {1, 8}, true), ElementsAre(0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3));
}

// No block of a cluster arrives at its barrier.
TEST_F(BlocksInTurns, that_wait_for_their_cluster_in_vain_are_stuck_and_make_room_for_others) {
  program.grid = {4, 1, 1};
  program.cluster.blocks = {2, 1, 1};
  program.in_clusters = true;
  program.code[0].run = [](Warp& w, const MicroOp* op) -> const MicroOp* {
    turn_log.blocks.push_back(w.block->linear);
    park(w, index_of(w, op), w.mask, Wait::cluster);
    return next_group(w);
  };
  EXPECT_THAT(turns({1, 1, 1, 1}, {2, 2}, false), ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(outcome.findings.size(), 1U);
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::barrier_divergence);
  EXPECT_EQ(outcome.findings[0].count, 4U);
  EXPECT_EQ(outcome.findings[0].block[0], 0U);
}

TEST_F(BlocksInTurns, that_only_look_in_vain_hang_once_they_executed_more_than_a_block_may) {
  program.instruction_limit = 19;
  std::vector<unsigned> endless(5, 1000);
  const std::vector<std::uint32_t> found = turns(endless, {1, 3}, true);
  ASSERT_EQ(outcome.findings.size(), 1U);
  EXPECT_EQ(outcome.findings[0].kind, FindingKind::hang);
  EXPECT_EQ(outcome.findings[0].block[0], 0U);
  EXPECT_EQ(outcome.findings[0].detail,
            "3 blocks of 5 are there, and all of them look at memory that none of them changes; "
            "--resident gives how many are there at once");
  // Rounds of 1, 1, 2 and, until they are more than 19, of 3 turns.
  EXPECT_EQ(found.size(), 1U + 1 + 2 + 6 * 3);
}

}  // namespace
}  // namespace demarc::emulate
