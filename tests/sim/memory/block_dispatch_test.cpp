// Dispatch policies in charge of the simulated GPU's blocks: placement decides who meets whom.
#include <gtest/gtest.h>

#include "small_memory.hpp"

namespace demarc::sim::memory::test {
namespace {

using Blocks = std::vector<std::vector<std::vector<Step>>>;

const PolicyInfo* policy(std::string_view name) {
  return find_policy(name).value();
}

// Eight blocks of one warp; blocks 2i and 2i + 1 read the same line, the second one later.
Blocks pairs_of_readers() {
  Blocks blocks;
  for (std::uint64_t i = 0; i < 8; ++i) {
    Step step = access(StepKind::load, {(i / 2 + 1) * 0x200 | 15U}, true);
    step.instructions = i % 2 == 0 ? 1 : 400;
    blocks.push_back({{step}});
  }
  return blocks;
}

std::shared_ptr<const BlockSharing> neighbours_share() {
  std::vector<SharedPlaces> sets;
  for (BlockNumber even; even != BlockNumber(8); even = even + 2) {
    sets.push_back({9, {even, even + 1}});
  }
  return std::make_shared<const BlockSharing>(8, sets);
}

ClientStatistics after_one_launch(const PolicyInfo* dispatch,
                                  std::shared_ptr<const BlockSharing> sharing) {
  Simulation gpu(small_memory());
  const auto client = gpu.add_client({.name = "readers",
                                      .sms = sms({0, 1, 2, 3}),
                                      .source = launch_of(pairs_of_readers()),
                                      .translation = {},
                                      .dispatch = dispatch,
                                      .sharing = std::move(sharing)});
  EXPECT_TRUE(gpu.run_launches(client, 1));
  return gpu.statistics(client);
}

TEST(BlockDispatch, locality_puts_sharers_on_one_sm_and_round_robin_parts_them) {
  const auto apart = after_one_launch(policy("rr"), nullptr);
  const auto together = after_one_launch(policy("locality"), neighbours_share());
  EXPECT_EQ(apart.l1_hit_sectors, 0U);
  EXPECT_EQ(together.l1_hit_sectors, 4U * 4U);  // the second of each pair, four sectors
}

TEST(BlockDispatch, round_robin_over_four_sms_is_what_no_policy_does_on_an_empty_gpu) {
  const auto none_named = after_one_launch(nullptr, nullptr);
  const auto round_robin = after_one_launch(policy("rr"), nullptr);
  EXPECT_EQ(none_named.run_cycles, round_robin.run_cycles);
}

// How long the victim's first launch, one warp of arithmetic, takes beside three such blocks
// whose SMs `dispatch` picks.
Cycles victim_beside(const PolicyInfo* dispatch) {
  Step work;
  work.kind = StepKind::work;
  work.instructions = 1000;
  Spec spec = small_memory();
  spec.instruction_cycles = 1_cycles;
  Simulation gpu(spec);
  const auto victim = gpu.add_client({"victim", sms({0, 1, 2, 3}), launch_of({{{work}}}), {}});
  gpu.add_client({.name = "aggressor",
                  .sms = sms({0, 1, 2, 3}),
                  .source = launch_of({{{work}}, {{work}}, {{work}}}),
                  .translation = {},
                  .dispatch = dispatch});
  EXPECT_TRUE(gpu.run_launches(victim, 1));
  return gpu.statistics(victim).run_cycles.at(0);
}

Step work_of(std::uint32_t instructions) {
  Step work;
  work.kind = StepKind::work;
  work.instructions = instructions;
  return work;
}

// Each kernel is placed by what its own blocks need, whatever was placed last.
TEST(BlockDispatch, a_small_block_goes_beside_a_large_one_of_another_client) {
  Spec spec = small_memory();
  spec.instruction_cycles = 1_cycles;
  Simulation gpu(spec);
  const auto client = [&](std::size_t warps, std::uint32_t instructions) {
    const std::vector<std::vector<Step>> block(warps, {work_of(instructions)});
    ClientSpec made;
    made.name = std::to_string(warps);
    made.sms = sms({0});
    made.source = launch_of({block});
    made.dispatch = policy("bfa");
    return gpu.add_client(std::move(made));
  };
  client(3, 5000);  // 96 of 128 threads
  const auto small = client(1, 10);
  ASSERT_TRUE(gpu.run_launches(small, 1));
  EXPECT_LT(gpu.statistics(small).run_cycles.at(0), 1000_cycles);
}

TEST(BlockDispatch, an_aggressor_placed_depth_first_shares_the_victims_sm_breadth_first_not) {
  const Cycles apart = victim_beside(policy("bfa"));
  const Cycles together = victim_beside(policy("dfa"));
  EXPECT_GE(apart, 1000_cycles);
  EXPECT_LT(apart, 1100_cycles);
  EXPECT_GT(together, 3 * apart);  // four warps take turns
}

TEST(BlockDispatch, every_policy_runs_every_block_of_two_clients_to_the_end) {
  for (const PolicyInfo& info : dispatch_policies()) {
    SCOPED_TRACE(info.name);
    Simulation gpu(small_memory());
    const auto add = [&](std::string name, std::initializer_list<std::uint32_t> on) {
      Blocks blocks = pairs_of_readers();
      const Blocks again = pairs_of_readers();
      for (int i = 0; i < 3; ++i) blocks.insert(blocks.end(), again.begin(), again.end());
      return gpu.add_client({.name = std::move(name),
                             .sms = sms(on),
                             .source = launch_of(blocks),
                             .translation = {},
                             .threads_per_sm = 96,
                             .dispatch = &info,
                             .sharing = neighbours_share()});
    };
    const auto a = add("a", {0, 1, 2});
    const auto b = add("b", {1, 3});
    ASSERT_TRUE(gpu.run_launches(a, 2));
    ASSERT_TRUE(gpu.run_launches(b, 2));
    EXPECT_GE(gpu.statistics(a).blocks, 64U);
    EXPECT_GE(gpu.statistics(b).blocks, 64U);
  }
}

}  // namespace
}  // namespace demarc::sim::memory::test
