// Turns of the warps of a block: what they count, how long its lanes wait, and when they go on
// without others.
#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "groups.hpp"
#include "ops/control.hpp"
#include "started_block.hpp"

namespace demarc::emulate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Warps that stop once and then end.
TEST_F(StartedBlock, names_the_warp_in_its_trace_where_another_one_goes_on) {
  program.functions[0].entry = 0;
  program.instruction_limit = 100;
  program.code.resize(2);
  program.code[0].run = [](Warp& warp, const MicroOp*) -> const MicroOp* {
    warp.resume = 1;
    return nullptr;
  };
  program.code[1].run = control::exit_lanes;
  const auto traced = [&](std::uint32_t threads, bool tracing) {
    program.block = {threads, 1, 1};
    Block block(program, pool);
    block.start(0, tracing, false);
    EXPECT_TRUE(block.advance(false));
    EXPECT_FALSE(block.advance(false));
    EXPECT_FALSE(block.stopped);
    return std::vector<std::uint64_t>(
        block.trace.begin(), block.trace.begin() + static_cast<std::ptrdiff_t>(block.trace_used));
  };
  const std::uint64_t first = trace_detail::head(trace_detail::kind_warp, 0, full_mask);
  const std::uint64_t second = trace_detail::head(trace_detail::kind_warp, 1, 0x3ffff);
  EXPECT_THAT(traced(32, true), ElementsAre(first));
  EXPECT_THAT(traced(50, true), ElementsAre(first, second, first, second));
  EXPECT_THAT(traced(50, false), IsEmpty());
}

// A block whose warps look at memory: in vain where `imm` of a micro-op says so.
class LookingBlock : public StartedBlock {
 protected:
  LookingBlock() {
    program.functions[0].entry = 0;
    program.instruction_limit = 1000;
    program.instructions.resize(1);
    program.code.resize(9);
    for (MicroOp& op : program.code) {
      op.run = [](Warp& warp, const MicroOp* at) -> const MicroOp* {
        warp.polls = at->imm != 0 ? max_polls : 0;
        warp.resume = index_of(warp, at);
        return nullptr;
      };
    }
    block = std::make_unique<Block>(program, pool);
    block->start(0, false, false);
  }

  // Lane 0 of a warp waits at a meeting for the others, which `wait`.
  void part(Warp& warp, Wait wait) const {
    warp.frame = nullptr;
    open_meeting(warp, 5).arrived = 1;
    park(warp, 5, warp.live - 1, wait);
    warp.mask = 0;
    warp.state = WarpState::waiting;
  }
  // How often the block looks in vain, at most 100 times, until `done`.
  template <class Done>
  unsigned looks_until(bool apart, Done done) {
    for (MicroOp& op : program.code) op.imm = 1;
    unsigned looks = 0;
    while (!done() && looks < 100) {
      EXPECT_TRUE(block->advance(apart));
      EXPECT_TRUE(block->stalled);
      ++looks;
    }
    return looks;
  }
  void look_well() {
    for (MicroOp& op : program.code) op.imm = 0;
    EXPECT_TRUE(block->advance(false));
    EXPECT_FALSE(block->stalled);
    EXPECT_EQ(block->vain_rounds, 0U);
  }

  std::unique_ptr<Block> block;
};

TEST_F(LookingBlock, gives_each_warp_a_frame_of_the_kernel_until_it_ends) {
  std::byte* const spare = pool.take(program.functions[0]);
  pool.give_back(program.functions[0], spare);
  look_well();
  const Warp& warp = block->warps[0];
  ASSERT_EQ(warp.kernel_frame, spare);
  ASSERT_EQ(warp.frame, spare);
  ASSERT_NE(block->warps[1].kernel_frame, nullptr);
  EXPECT_NE(block->warps[1].kernel_frame, spare);
  for (MicroOp& op : program.code) op.run = control::exit_lanes;
  block->warps[1].state = WarpState::done;
  EXPECT_FALSE(block->advance(false));
  EXPECT_EQ(warp.state, WarpState::done);
  EXPECT_EQ(warp.kernel_frame, nullptr);
  EXPECT_EQ(pool.take(program.functions[0]), spare);
}

TEST_F(LookingBlock, makes_registers_zero_that_may_be_read_before_they_are_written_and_no_others) {
  program.functions[0].zeroed = {{.offset = 64, .bytes = 32}};
  std::byte* const dirty = pool.take(program.functions[0]);
  std::fill_n(dirty, 128, std::byte{9});
  pool.give_back(program.functions[0], dirty);
  look_well();
  ASSERT_EQ(block->warps[0].frame, dirty);
  EXPECT_EQ(std::count(dirty + 64, dirty + 96, std::byte{0}), 32);
  EXPECT_EQ(dirty[63], std::byte{9});
  EXPECT_EQ(dirty[96], std::byte{9});
  std::fill_n(dirty, 128, std::byte{8});
  look_well();
  EXPECT_EQ(dirty[64], std::byte{8}) << "only once";
}

TEST_F(LookingBlock, lets_lanes_go_on_without_others_after_64_rounds_in_vain_or_where_it_is_told) {
  Warp& parted = block->warps[1];
  part(parted, Wait::barrier);
  const auto goes_on = [&] { return parted.state == WarpState::ready; };
  const auto looks = [&](unsigned most) {
    unsigned so_far = 0;
    return looks_until(false, [&] { return goes_on() || so_far++ == most; });
  };
  ASSERT_EQ(looks(40), 40U);
  EXPECT_EQ(block->vain_rounds, 40U);
  look_well();
  ASSERT_EQ(looks(100), 65U) << "in a row";
  EXPECT_TRUE(parted.torn);
  ASSERT_EQ(parted.groups.size(), 2U);
  EXPECT_EQ(parted.groups[1].mask, 1U);
  EXPECT_EQ(parted.groups[1].pc, 5U);

  block->start(0, false, false);
  part(parted, Wait::barrier);
  EXPECT_EQ(looks_until(true, goes_on), 1U);
}

// The lanes that look are themselves those for which the others wait.
TEST_F(LookingBlock, lets_a_warp_part_after_64_turns_in_vain_or_where_it_is_told) {
  Warp& looking = block->warps[0];
  Warp& other = block->warps[1];
  const auto begin = [&] {
    block->start(0, false, false);
    other.state = WarpState::done;
    open_meeting(looking, 5).arrived = 1;
    looking.mask = looking.live - 1;
  };
  const auto apart = [&] { return looking.torn; };
  begin();
  ASSERT_EQ(looks_until(false, [&] { return looking.idle_turns == 40; }), 40U);
  EXPECT_FALSE(looking.torn);
  look_well();
  EXPECT_EQ(looks_until(false, apart), 65U);
  begin();
  EXPECT_EQ(looks_until(true, apart), 1U);
}

// No warp can run: some lanes may wait for other blocks.
TEST_F(LookingBlock, waits_for_its_cluster_where_any_lane_of_any_warp_does_and_else_is_stuck) {
  const auto idle = [&](Wait first, std::optional<Wait> second) {
    block->start(0, false, false);
    part(block->warps[0], first);
    if (second) park(block->warps[0], 5, 1, *second);
    for (Meeting& meeting : block->warps[0].meetings) meeting.arrived = 0;
    block->warps[1].state = WarpState::done;
    const bool goes_on = block->advance(false);
    EXPECT_EQ(block->idle, goes_on);
    EXPECT_FALSE(block->stalled) << "no warp looked at memory";
    EXPECT_EQ(block->vain_rounds, 0U);
    EXPECT_EQ(block->stopped, !goes_on);
    EXPECT_EQ(block->findings.size(), goes_on ? 0U : 1U);
    return goes_on;
  };
  EXPECT_TRUE(idle(Wait::cluster, std::nullopt));
  EXPECT_TRUE(idle(Wait::cluster, Wait::step));
  EXPECT_TRUE(idle(Wait::step, Wait::cluster));
  EXPECT_FALSE(idle(Wait::step, std::nullopt));
  EXPECT_FALSE(idle(Wait::members, Wait::step));
}

// Each turn executes 5 instructions.
TEST_F(LookingBlock, counts_the_instructions_of_its_warps_up_to_the_limit) {
  program.instruction_limit = 20;
  for (MicroOp& op : program.code) {
    op.run = [](Warp& warp, const MicroOp*) -> const MicroOp* {
      warp.warp_instructions += 5;
      return nullptr;
    };
  }
  EXPECT_TRUE(block->advance(false));
  EXPECT_EQ(block->executed, 10U);
  EXPECT_TRUE(block->advance(false));
  EXPECT_EQ(block->executed, 20U);
  EXPECT_THAT(block->findings, IsEmpty()) << "it may execute so many";
  EXPECT_FALSE(block->advance(false));
  EXPECT_EQ(block->executed, 25U) << "the other warp has no turn any more";
  EXPECT_TRUE(block->stopped);
  ASSERT_EQ(block->findings.size(), 1U);
  EXPECT_EQ(block->findings[0].finding.kind, FindingKind::hang);
  EXPECT_EQ(block->findings[0].finding.detail,
            "the block executed more than 20 warp instructions without ending");
}

TEST_F(LookingBlock, that_ends_with_the_last_instructions_does_not_hang) {
  program.instruction_limit = 4;
  program.code[0].run = [](Warp& warp, const MicroOp* op) -> const MicroOp* {
    warp.warp_instructions += 5;
    return control::exit_lanes(warp, op);
  };
  block->warps[1].state = WarpState::done;
  EXPECT_FALSE(block->advance(false));
  EXPECT_THAT(block->findings, IsEmpty());
}

TEST_F(LookingBlock, gives_warps_shorter_turns_near_the_limit) {
  program.turn = 100;
  program.longest_run = 30;
  const auto budget = [&](std::uint64_t executed) {
    block->executed = executed;
    EXPECT_TRUE(block->advance(false));
    return block->warps[0].budget;
  };
  EXPECT_EQ(budget(0), 100);
  EXPECT_EQ(budget(901), 100);
  EXPECT_EQ(budget(902), 99);
  EXPECT_EQ(budget(960), 41);
  EXPECT_EQ(budget(999), 30) << "what is counted at once";
  EXPECT_EQ(budget(1000), 30);
}

TEST_F(LookingBlock, has_not_looked_in_vain_where_a_warp_has_ended) {
  program.code[1].run = control::exit_lanes;
  block->warps[1].resume = 1;
  program.code[0].imm = 1;
  EXPECT_TRUE(block->advance(false));
  EXPECT_FALSE(block->stalled);
  EXPECT_EQ(block->vain_rounds, 0U);
  EXPECT_TRUE(block->advance(false));
  EXPECT_TRUE(block->stalled);
}

// Lane 0 waits for the others at a meeting, and they go on and on.
TEST_F(LookingBlock, lets_lanes_go_on_without_those_that_have_run_for_262144_instructions) {
  Warp& warp = block->warps[0];
  block->warps[1].state = WarpState::done;
  program.instruction_limit = 1 << 30;
  open_meeting(warp, 5).arrived = 1;
  warp.mask = warp.live - 1;
  warp.turned = 7;
  warp.warp_instructions = 7 + (1 << 18);
  EXPECT_TRUE(block->advance(false));
  EXPECT_FALSE(warp.torn);
  ++warp.warp_instructions;
  EXPECT_TRUE(block->advance(false));
  EXPECT_TRUE(warp.torn);
  EXPECT_EQ(warp.mask, 1U);
  EXPECT_EQ(warp.resume, 5U);
}

}  // namespace
}  // namespace demarc::emulate
