#include "demarc/partition/partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/gpu/device.hpp"

namespace demarc::partition {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

gpu::Topology h100() {
  return gpu::find_device("h100-sxm").value().topology;
}

// A topology of up to 24 GPCs of unequal size, sides dealt at random.
gpu::Topology any_topology() {
  gpu::Topology topology;
  const auto gpcs = *rc::gen::inRange<std::uint32_t>(1, 24);
  std::uint32_t sm = 0;
  for (std::uint32_t gpc = 0; gpc < gpcs; ++gpc) {
    const auto tpcs = *rc::gen::inRange<std::uint32_t>(1, 6);
    const auto side = *rc::gen::inRange<std::uint32_t>(0, 2);
    for (std::uint32_t t = 0; t < tpcs; ++t) {
      gpu::Tpc tpc;
      tpc.gpc = gpc;
      tpc.side = side;
      tpc.sms = {sm, sm + 1};
      sm += 2;
      topology.tpcs.push_back(tpc);
    }
  }
  return topology;
}

TEST(TpcSet, HoldsAllOf128Members) {
  TpcSet set;
  set.insert(0);
  set.insert(127);
  set.insert(128);  // outside: ignored
  EXPECT_THAT(set.members(), ElementsAre(0U, 127U));
  EXPECT_TRUE(set.contains(127));
  EXPECT_FALSE(set.contains(128));
  set.erase(0);
  EXPECT_EQ(set.size(), 1U);
}

TEST(TpcSet, IsWrittenAsRangesAndReadBack) {
  EXPECT_EQ(to_string(TpcSet{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(to_string(TpcSet{}), "none");
  EXPECT_EQ(to_string(TpcSet::first(128)), "0-127");
  EXPECT_EQ(*parse_tpc_set("0-3,8,10-11", 66, "--tpcs"), (TpcSet{0, 1, 2, 3, 8, 10, 11}));
}

TEST(TpcSet, AListBeyondTheGpuNamesTheOption) {
  const auto set = parse_tpc_set("60-66", 66, "--tpcs");
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("--tpcs"));
  EXPECT_FALSE(parse_tpc_set("", 66, "--tpcs"));
}

RC_GTEST_PROP(TpcSet, EverySetIsReadBackFromItsText, (std::uint64_t low, std::uint64_t high)) {
  const TpcSet set = TpcSet::from_words(low, high);
  RC_PRE(!set.empty());
  RC_ASSERT(*parse_tpc_set(to_string(set), 128, "x") == set);
  RC_ASSERT(TpcSet::of(set.members()) == set);
}

RC_GTEST_PROP(Split, PartsAreDisjointCoverTheGpuAndAreEvenlySized, ()) {
  const gpu::Topology topology = any_topology();
  const auto strategy = *rc::gen::element(SplitStrategy::packed, SplitStrategy::distributed,
                                          SplitStrategy::gpc_aligned, SplitStrategy::side_aware);
  const auto most =
      strategy == SplitStrategy::gpc_aligned ? topology.gpc_count() : topology.tpc_count();
  const auto parts = *rc::gen::inRange<std::uint32_t>(1, most + 1);
  const auto result = split(topology, parts, strategy);
  RC_ASSERT(result.has_value());
  const SplitReport report = check_split(topology, *result);
  RC_ASSERT(report.sound());
  RC_ASSERT(report.unused.empty());
  if (strategy == SplitStrategy::gpc_aligned) {
    RC_ASSERT(report.shared_gpcs.empty());
    return;
  }
  std::uint32_t least = 128;
  std::uint32_t largest = 0;
  for (const Partition& part : *result) {
    least = std::min(least, part.tpcs.size());
    largest = std::max(largest, part.tpcs.size());
  }
  RC_ASSERT(largest - least <= 1U);
}

RC_GTEST_PROP(Split, SideAwarePartsCrossTheMiddleAtMostOnce, ()) {
  const gpu::Topology topology = any_topology();
  const auto parts = *rc::gen::inRange<std::uint32_t>(1, topology.tpc_count() + 1);
  std::uint32_t on_both = 0;
  const auto result = split(topology, parts, SplitStrategy::side_aware);
  for (const Partition& part : *result) {
    bool side[2] = {false, false};
    for (const std::uint32_t tpc : part.tpcs.members()) side[*topology.tpcs[tpc].side] = true;
    on_both += side[0] && side[1] ? 1U : 0U;
  }
  RC_ASSERT(on_both <= 1U);
}

RC_GTEST_PROP(Split, SideAlignedPartsLieOnOneSideAndShareNoGpcOfIt, ()) {
  const gpu::Topology topology = any_topology();
  const auto parts = *rc::gen::inRange<std::uint32_t>(1, topology.tpc_count() + 1);
  const auto result = split(topology, parts, SplitStrategy::side_aligned);
  if (parts % 2 != 0) {
    RC_ASSERT(!result);
    return;
  }
  RC_PRE(result.has_value());
  std::uint32_t covered = 0;
  for (std::uint32_t p = 0; p < parts; ++p) {
    const TpcSet& tpcs = (*result)[p].tpcs;
    covered += tpcs.size();
    for (const std::uint32_t tpc : tpcs.members()) {
      RC_ASSERT(*topology.tpcs[tpc].side == (p < parts / 2 ? 0U : 1U));
      for (std::uint32_t other = 0; other < parts; ++other) {
        if (other == p || (other < parts / 2) != (p < parts / 2)) continue;
        const TpcSet same_gpc = TpcSet::of(topology.tpcs_of_gpc(topology.tpcs[tpc].gpc));
        RC_ASSERT(((*result)[other].tpcs & same_gpc).empty());
      }
    }
  }
  RC_ASSERT(covered == topology.tpc_count());
}

TEST(Split, HalvesOfTheH100Have33TpcsEach) {
  const auto parts = split(h100(), 2, SplitStrategy::packed, 2).value();
  EXPECT_EQ(parts[0].tpcs.size(), 33U);
  EXPECT_EQ(parts[1].tpcs.size(), 33U);
  EXPECT_EQ(parts[0].colors, 1U);
  EXPECT_EQ(parts[1].colors, 2U);
  EXPECT_EQ(parts[1].name, "2/2");
}

TEST(Split, DistributedPartsTouchEveryLargeGpc) {
  const auto parts = split(h100(), 2, SplitStrategy::distributed);
  for (const Partition& part : *parts) {
    for (std::uint32_t gpc = 0; gpc < 8; ++gpc) {
      EXPECT_FALSE((part.tpcs & TpcSet::of(h100().tpcs_of_gpc(gpc))).empty()) << gpc;
    }
  }
}

TEST(Split, WhatCannotBeSplitSaysWhy) {
  EXPECT_THAT(split(h100(), 67, SplitStrategy::packed).error().message, HasSubstr("give 1 to 66"));
  EXPECT_THAT(split(h100(), 13, SplitStrategy::gpc_aligned).error().message, HasSubstr("12 GPCs"));
  EXPECT_THAT(split(h100(), 3, SplitStrategy::packed, 16).error().message, HasSubstr("16 colours"));
  gpu::Topology sideless = h100();
  for (gpu::Tpc& tpc : sideless.tpcs) tpc.side.reset();
  const auto result = split(sideless, 2, SplitStrategy::side_aware);
  EXPECT_EQ(result.error().kind, ErrorKind::missing_capability);
}

TEST(Split, OverlapsAndEmptyPartsAreReportedByName) {
  const auto topology = gpu::regular_topology(2, 2, 2);
  const SplitReport report = check_split(
      topology, {{"a", {0, 1}, 1, 0}, {"b", {1, 2}, 3, 0}, {"c", {}, 0, 0}, {"d", {9}, 0, 0}});
  EXPECT_THAT(report.faults, ElementsAre(HasSubstr("'a' and 'b' share the TPCs 1"),
                                         HasSubstr("'a' and 'b' share memory colours (0x1)"),
                                         HasSubstr("'c' has no TPC"),
                                         HasSubstr("'d' names the TPCs 9; the GPU has 0-3")));
  EXPECT_THAT(report.shared_gpcs, ElementsAre(0U));
  EXPECT_EQ(report.unused, TpcSet{3});
}

TEST(Take, SharesAreRoundedUpToWholeTpcs) {
  EXPECT_EQ(take_sms(h100(), 3)->size(), 2U);
  EXPECT_EQ(take_share(h100(), 50)->size(), 33U);
  EXPECT_EQ(take_share(h100(), 0.1)->size(), 1U);
  EXPECT_EQ(take_share(h100(), 100)->size(), 66U);
  EXPECT_FALSE(take_share(h100(), 0));
  EXPECT_FALSE(take_share(h100(), 101));
  EXPECT_FALSE(take_sms(h100(), 133));
}

TEST(Cluster, MustFitIntoOneGpcOfTheSet) {
  const auto topology = h100();
  EXPECT_EQ(largest_cluster(topology, all_tpcs(topology), 1), 18U);
  // Two TPCs of one GPC and two of another: four SMs at most in one.
  const TpcSet scattered{0, 1, 4, 5};
  EXPECT_TRUE(check_cluster(topology, scattered, 4, 1));
  EXPECT_TRUE(check_cluster(topology, scattered, 8, 2));
  const auto refused = check_cluster(topology, scattered, 8, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("clusters of 8 blocks cannot run on the TPCs "
                                                 "0-1,4-5: the largest GPC of the set holds 4"));
}

TEST(Gpcs, AListOfGpcsIsTheirTpcs) {
  EXPECT_EQ(*tpcs_of_gpcs(h100(), "0", "--gpcs"), TpcSet::first(4));
  EXPECT_EQ(sm_count(h100(), *tpcs_of_gpcs(h100(), "0,8-11", "--gpcs")), 16U);
  EXPECT_FALSE(tpcs_of_gpcs(h100(), "12", "--gpcs"));
}

}  // namespace
}  // namespace demarc::partition
