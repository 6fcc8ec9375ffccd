// Exact cycles of every component: the cycle before is not ready.
#include <gtest/gtest.h>

#include "translation/bypass.hpp"
#include "translation/gpu_memory.hpp"
#include "translation/network.hpp"
#include "translation/tlb.hpp"
#include "translation/walker_pool.hpp"

namespace demarc::sim::translation {
namespace {

TEST(TranslationNetwork, a_translation_request_reaches_the_iommu_over_two_switches_in_283_cycles) {
  const Settings settings;
  Network network(settings);
  ASSERT_EQ(network.hops(Node(0), network.cpu()), 3U);
  Cycles at;
  for (std::uint32_t hop = 0; hop < 3; ++hop)
    at = network.cross(Node(0), network.cpu(), hop, 1, at);
  EXPECT_EQ(at, Cycles(3 * 1 + 2 * 140));
}

TEST(TranslationNetwork, a_chain_puts_gpus_3_and_4_one_switch_further_away) {
  Settings settings;
  settings.topology = Topology::chain;
  const Network network(settings);
  EXPECT_EQ(network.hops(Node(0), network.cpu()), 3U);
  EXPECT_EQ(network.hops(Node(3), network.cpu()), 4U);
  EXPECT_EQ(network.hops(Node(0), Node(1)), 2U);
  EXPECT_EQ(network.hops(Node(0), Node(2)), 3U);
}

TEST(TranslationNetwork, a_cross_pair_of_the_star_passes_three_switches) {
  const Network network(Settings{});
  EXPECT_EQ(network.hops(Node(0), Node(1)), 2U);
  EXPECT_EQ(network.hops(Node(0), Node(2)), 4U);
}

TEST(TranslationNetwork, a_link_serialises_messages_in_order) {
  Network network(Settings{});
  const auto crossed = [&](Node from, Node to, std::uint32_t flits) {
    return network.cross(from, to, 0, flits, 100_cycles);
  };
  EXPECT_EQ(crossed(Node(0), Node(1), 20), Cycles(100 + 20 + 140));
  EXPECT_EQ(crossed(Node(0), Node(1), 5), Cycles(120 + 5 + 140));
  EXPECT_EQ(crossed(Node(1), Node(0), 5), Cycles(100 + 5 + 140)) << "the other direction is free";
}

TEST(TranslationNetwork, messages_have_the_flits_of_pcie_3_x16) {
  const Network network(Settings{});
  EXPECT_EQ(network.flits(0), 0U);
  EXPECT_EQ(network.flits(12), 1U);
  EXPECT_EQ(network.flits(64 + 4), 5U);
  EXPECT_EQ(network.flits(64 + 12), 6U);
  EXPECT_EQ(network.flits(256 + 12), 20U);
  Settings plain;
  plain.link_encoding = 0;
  EXPECT_EQ(Network(plain).flits(64 + 4), 4U) << "68 of 17";
}

TEST(TranslationWalkers, a_full_pool_makes_the_next_request_wait_for_a_walker) {
  WalkerPool pool(2, 100_cycles);
  WalkRequest request;
  Cycles end;
  for (const PageNumber page : indices<PageNumber>(3)) pool.arrive({GpuIndex(0), page}, 10_cycles);
  ASSERT_TRUE(pool.start(10_cycles, request, end));
  EXPECT_EQ(end, 110_cycles);
  ASSERT_TRUE(pool.start(10_cycles, request, end));
  EXPECT_EQ(end, 111_cycles) << "one walk starts a cycle";
  EXPECT_FALSE(pool.start(109_cycles, request, end));
  pool.finish();
  ASSERT_TRUE(pool.start(110_cycles, request, end));
  EXPECT_EQ(request.page, PageNumber(2));
  EXPECT_EQ(end, 210_cycles);
  EXPECT_EQ(pool.queue_wait(), Cycles(0 + 1 + 100));
}

TEST(TranslationTlb, a_miss_under_full_mshrs_blocks_and_a_pending_page_is_joined) {
  using Outcome = Tlb<int>::Outcome;
  Tlb<int> tlb(1, 2, 1);
  EXPECT_EQ(tlb.look_up(PageNumber(7), 1), Outcome::missed);
  EXPECT_EQ(tlb.look_up(PageNumber(7), 2), Outcome::joined);
  EXPECT_EQ(tlb.look_up(PageNumber(8), 3), Outcome::blocked);
  std::vector<int> answered;
  tlb.fill(PageNumber(7), [&](int waiter) { answered.push_back(waiter); });
  EXPECT_EQ(answered, (std::vector<int>{1, 2}));
  EXPECT_EQ(tlb.look_up(PageNumber(7), 4), Outcome::hit);
  EXPECT_EQ(tlb.look_up(PageNumber(8), 5), Outcome::missed);
}

TEST(TranslationTlb, the_least_recently_used_entry_makes_room) {
  LruSets<PageNumber> sets(1, 2);
  sets.insert(PageNumber(1));
  sets.insert(PageNumber(2));
  EXPECT_TRUE(sets.touch(PageNumber(1)));
  sets.insert(PageNumber(3));
  EXPECT_FALSE(sets.touch(PageNumber(2)));
  EXPECT_TRUE(sets.touch(PageNumber(1)));
  EXPECT_TRUE(sets.touch(PageNumber(3)));
}

TEST(TranslationMemory, a_miss_takes_the_bank_and_the_dram_a_hit_only_the_bank) {
  Settings settings;
  GpuMemory memory(settings);
  EXPECT_EQ(memory.read(FrameLine(0), 50_cycles), Cycles(50 + 10 + 100));
  EXPECT_EQ(memory.read(FrameLine(0), 200_cycles), Cycles(200 + 10));
  EXPECT_EQ(memory.read(FrameLine(0), 200_cycles), Cycles(201 + 10))
      << "the bank takes one request a cycle";
  EXPECT_EQ(memory.read(FrameLine(64), 200_cycles), Cycles(200 + 110))
      << "the next page lies in another bank";
}

TEST(TranslationMemory, with_all_miss_registers_taken_the_next_miss_waits_for_the_oldest) {
  Settings settings;
  settings.l2_mshrs = 1;
  GpuMemory memory(settings);
  EXPECT_EQ(memory.read(FrameLine(0), 0_cycles), 110_cycles);
  EXPECT_EQ(memory.read(FrameLine(1), 1_cycles), Cycles(110 + 110));
}

TEST(TranslationBypass, the_residency_filter_never_skips_a_page_that_is_there) {
  const auto filter = make_bypass_decision(Settings{});
  for (std::uint32_t page = 0; page < 20000; page += 3) filter->on_table_insert(PageNumber(page));
  for (std::uint32_t page = 0; page < 20000; page += 3)
    ASSERT_FALSE(filter->skip_gmmu(PageNumber(page), true));
}

TEST(TranslationBypass, the_epoch_policy_skips_after_an_epoch_of_misses_and_keeps_sampling) {
  Settings settings;
  settings.bypass_policy = BypassPolicy::epoch;
  settings.bypass_epoch = 16;
  const auto policy = make_bypass_decision(settings);
  for (int i = 0; i < 16; ++i) {
    EXPECT_FALSE(policy->skip_gmmu(PageNumber(0), false));
    policy->on_walk(false);
  }
  int skipped = 0;
  for (int i = 0; i < 160; ++i) skipped += policy->skip_gmmu(PageNumber(0), false) ? 1 : 0;
  EXPECT_EQ(skipped, 150);
}

}  // namespace
}  // namespace demarc::sim::translation
