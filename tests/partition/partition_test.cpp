// Tests that parts of a split are disjoint and cover the GPU.
#include "demarc/partition/partition.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "demarc/device/device.hpp"
#include "sms.hpp"
#include "split_check.hpp"

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
  gpu::SmIndex sm;
  for (std::uint32_t gpc = 0; gpc < gpcs; ++gpc) {
    const auto tpcs = *rc::gen::inRange<std::uint32_t>(1, 6);
    const auto side = *rc::gen::inRange<std::uint32_t>(0, 2);
    for (std::uint32_t t = 0; t < tpcs; ++t) {
      gpu::Tpc tpc;
      tpc.gpc = gpu::GpcIndex(gpc);
      tpc.side = side;
      tpc.sms = {sm, sm + 1};
      sm = sm + 2;
      topology.tpcs.push_back(tpc);
    }
  }
  return topology;
}

// TPCs of this many GPCs, dealt out in turn: no GPC's TPCs are neighbours. SMs are numbered from
// the end.
gpu::Topology interleaved(std::uint32_t tpcs, std::uint32_t gpcs) {
  gpu::Topology topology;
  for (std::uint32_t t = 0; t < tpcs; ++t) {
    gpu::Tpc tpc;
    tpc.gpc = gpu::GpcIndex(t % gpcs);
    tpc.side = t % gpcs % 2;
    tpc.sms = test::sm_list({2 * (tpcs - t) - 2, 2 * (tpcs - t) - 1});
    topology.tpcs.push_back(tpc);
  }
  return topology;
}

std::vector<gpu::TpcSet> sets_of(const Result<std::vector<Partition>>& parts) {
  std::vector<gpu::TpcSet> sets;
  for (const Partition& part : parts.value()) sets.push_back(part.tpcs);
  return sets;
}

RC_GTEST_PROP(Split, parts_are_disjoint_cover_the_gpu_and_are_evenly_sized, ()) {
  const gpu::Topology topology = any_topology();
  const auto strategy = *rc::gen::element(SplitStrategy::packed, SplitStrategy::distributed,
                                          SplitStrategy::gpc_aligned, SplitStrategy::side_aware);
  const auto most =
      strategy == SplitStrategy::gpc_aligned ? topology.gpc_count() : topology.tpc_count();
  const auto parts = *rc::gen::inRange<std::uint32_t>(1, most + 1);
  const auto result = split(topology, parts, strategy);
  RC_ASSERT(result.has_value());
  const test::SplitReport report = test::check_split(topology, *result);
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

RC_GTEST_PROP(Split, side_aware_parts_cross_the_middle_at_most_once, ()) {
  const gpu::Topology topology = any_topology();
  const auto parts = *rc::gen::inRange<std::uint32_t>(1, topology.tpc_count() + 1);
  std::uint32_t on_both = 0;
  const auto result = split(topology, parts, SplitStrategy::side_aware);
  for (const Partition& part : *result) {
    bool side[2] = {false, false};
    for (const gpu::TpcIndex tpc : part.tpcs) side[*topology.tpcs[tpc].side] = true;
    on_both += side[0] && side[1] ? 1U : 0U;
  }
  RC_ASSERT(on_both <= 1U);
}

RC_GTEST_PROP(Split, side_aligned_parts_lie_on_one_side_and_share_no_gpc_of_it, ()) {
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
    const gpu::TpcSet& tpcs = (*result)[p].tpcs;
    covered += tpcs.size();
    for (const gpu::TpcIndex tpc : tpcs) {
      RC_ASSERT(*topology.tpcs[tpc].side == (p < parts / 2 ? 0U : 1U));
      for (std::uint32_t other = 0; other < parts; ++other) {
        if (other == p || (other < parts / 2) != (p < parts / 2)) continue;
        const gpu::TpcSet same_gpc = gpu::TpcSet::of(topology.tpcs_of_gpc(topology.tpcs[tpc].gpc));
        RC_ASSERT(((*result)[other].tpcs & same_gpc).empty());
      }
    }
  }
  RC_ASSERT(covered == topology.tpc_count());
}

TEST(Split, halves_of_the_h100_have_33_tpcs_each) {
  const auto parts = split(h100(), 2, SplitStrategy::packed, 2).value();
  EXPECT_EQ(parts[0].tpcs.size(), 33U);
  EXPECT_EQ(parts[1].tpcs.size(), 33U);
  EXPECT_EQ(parts[0].colors, color::ColorSet(1, 2));
  EXPECT_EQ(parts[1].colors, color::ColorSet(2, 2));
  EXPECT_EQ(parts[1].name, "2/2");
}

TEST(Split, each_strategy_deals_out_its_own_tpcs) {
  // GPC 0 holds the TPCs 0, 4 and 8; its side is that of GPC 2: 2, 6.
  const auto topology = interleaved(9, 4);
  EXPECT_THAT(sets_of(split(topology, 2, SplitStrategy::packed)),
              ElementsAre(gpu::TpcSet{0, 4, 8, 1, 5}, gpu::TpcSet{2, 6, 3, 7}));
  EXPECT_THAT(sets_of(split(topology, 2, SplitStrategy::distributed)),
              ElementsAre(gpu::TpcSet{0, 8, 5, 6, 7}, gpu::TpcSet{4, 1, 2, 3}));
  EXPECT_THAT(sets_of(split(topology, 3, SplitStrategy::gpc_aligned)),
              ElementsAre(gpu::TpcSet{0, 4, 8}, gpu::TpcSet{1, 5, 3, 7}, gpu::TpcSet{2, 6}));
  EXPECT_THAT(sets_of(split(topology, 2, SplitStrategy::side_aware)),
              ElementsAre(gpu::TpcSet{0, 4, 8, 2, 6}, gpu::TpcSet{1, 5, 3, 7}));
  EXPECT_THAT(
      sets_of(split(topology, 4, SplitStrategy::side_aligned)),
      ElementsAre(gpu::TpcSet{0, 4, 8}, gpu::TpcSet{2, 6}, gpu::TpcSet{1, 5}, gpu::TpcSet{3, 7}));
}

TEST(Split, colours_are_dealt_out_in_runs_up_to_all_of_64) {
  const auto quarters = split(h100(), 4, SplitStrategy::packed, 16).value();
  EXPECT_EQ(quarters[0].colors, color::ColorSet(0xf, 16));
  EXPECT_EQ(quarters[3].colors, color::ColorSet(0xf000, 16));
  EXPECT_EQ(split(h100(), 1, SplitStrategy::packed, 64).value()[0].colors.members(),
            ~std::uint64_t{0});
  EXPECT_EQ(split(h100(), 2, SplitStrategy::packed, 64).value()[1].colors.members(), ~0ULL << 32U);
  EXPECT_EQ(split(h100(), 2, SplitStrategy::packed).value()[1].colors, color::ColorSet());
}

TEST(Split, a_strategy_is_read_back_from_its_name_and_no_other_is) {
  for (const auto strategy :
       {SplitStrategy::packed, SplitStrategy::distributed, SplitStrategy::gpc_aligned,
        SplitStrategy::side_aware, SplitStrategy::side_aligned}) {
    EXPECT_EQ(parse_split_strategy(to_string(strategy)).value(), strategy);
  }
  EXPECT_THAT(parse_split_strategy("").error().message, HasSubstr("'': packed, "));
}

TEST(Split, distributed_parts_touch_every_large_gpc) {
  const auto parts = split(h100(), 2, SplitStrategy::distributed);
  for (const Partition& part : *parts) {
    for (const gpu::GpcIndex gpc : indices<gpu::GpcIndex>(8)) {
      EXPECT_FALSE((part.tpcs & gpu::TpcSet::of(h100().tpcs_of_gpc(gpc))).empty()) << gpc;
    }
  }
}

TEST(Split, what_cannot_be_split_says_why) {
  EXPECT_THAT(split(h100(), 67, SplitStrategy::packed).error().message, HasSubstr("give 1 to 66"));
  EXPECT_THAT(split(h100(), 13, SplitStrategy::gpc_aligned).error().message, HasSubstr("12 GPCs"));
  EXPECT_THAT(split(h100(), 3, SplitStrategy::packed, 16).error().message, HasSubstr("16 colours"));
  EXPECT_THAT(split(h100(), 0, SplitStrategy::packed).error().message, HasSubstr("into 0 parts"));
  EXPECT_TRUE(split(h100(), 66, SplitStrategy::packed));
  EXPECT_TRUE(split(h100(), 12, SplitStrategy::gpc_aligned));
  EXPECT_FALSE(split(h100(), 1, SplitStrategy::packed, 65));
  EXPECT_THAT(split(interleaved(129, 1), 1, SplitStrategy::packed).error().message,
              HasSubstr("129 TPCs, but masks have room for 128"));
  EXPECT_TRUE(split(interleaved(128, 1), 1, SplitStrategy::packed));
  EXPECT_THAT(split(interleaved(6, 3), 4, SplitStrategy::side_aligned).error().message,
              HasSubstr("L2 side 1 has 1 GPCs"));
  EXPECT_THAT(split(interleaved(6, 3), 3, SplitStrategy::side_aligned).error().message,
              HasSubstr("3 parts cannot be side-aligned: their number must be even"));
  gpu::Topology sideless = h100();
  for (gpu::Tpc& tpc : sideless.tpcs) tpc.side.reset();
  const auto result = split(sideless, 2, SplitStrategy::side_aware);
  EXPECT_EQ(result.error().kind, ErrorKind::missing_capability);
  EXPECT_FALSE(split(sideless, 2, SplitStrategy::side_aligned));
}

TEST(Split, throttled_neighbours_share_an_eighth_and_the_first_part_has_the_rest) {
  for (const std::uint32_t parts : {2U, 3U, 4U}) {
    const auto partitions = throttled_split(h100(), parts).value();
    ASSERT_EQ(partitions.size(), parts);
    gpu::TpcSet all;
    std::uint32_t neighbours = 0;
    for (std::uint32_t part = 0; part < parts; ++part) {
      EXPECT_EQ(partitions[part].name, fmt::format("{}/{}", part + 1, parts));
      EXPECT_EQ(partitions[part].sync_domain, part);
      EXPECT_FALSE(partitions[part].tpcs.empty());
      EXPECT_TRUE((all & partitions[part].tpcs).empty());
      all = all | partitions[part].tpcs;
      if (part > 0) neighbours += partitions[part].tpcs.size();
    }
    EXPECT_EQ(all, gpu::all_tpcs(h100()));
    EXPECT_NEAR(neighbours, 66.0 / 8, 2.5);
  }
}

TEST(Split, a_small_gpu_is_throttled_to_a_tpc_per_neighbour_and_one_without_enough_is_refused) {
  const auto partitions = throttled_split(interleaved(3, 1), 3).value();
  for (const Partition& part : partitions) EXPECT_EQ(part.tpcs.size(), 1U);
  EXPECT_EQ(throttled_split(interleaved(3, 1), 2)->front().tpcs.size(), 2U);
  EXPECT_THAT(throttled_split(interleaved(2, 1), 3).error().message,
              HasSubstr("3 throttled parts of 2 TPCs: give 2 parts to one per TPC"));
  EXPECT_FALSE(throttled_split(h100(), 1));
  EXPECT_FALSE(throttled_split(h100(), 0));
}

TEST(Split, overlaps_and_empty_parts_are_reported_by_name) {
  const auto topology = gpu::regular_topology(2, 2, 2);
  const test::SplitReport report = test::check_split(
      topology,
      {{"a", {0, 1}, {1, 2}, 0}, {"b", {1, 2}, {3, 2}, 0}, {"c", {}, {}, 0}, {"d", {9}, {}, 0}});
  EXPECT_THAT(report.faults, ElementsAre(HasSubstr("'a' and 'b' share the TPCs 1"),
                                         HasSubstr("'a' and 'b' share the memory colours 0 of 2"),
                                         HasSubstr("'c' has no TPC"),
                                         HasSubstr("'d' names the TPCs 9; the GPU has 0-3")));
  EXPECT_THAT(report.shared_gpcs, ElementsAre(gpu::GpcIndex(0)));
  EXPECT_EQ(report.unused, gpu::TpcSet{3});
}

TEST(Take, shares_are_rounded_up_to_whole_tpcs) {
  EXPECT_EQ(take_sms(h100(), 3)->size(), 2U);
  EXPECT_EQ(take_share(h100(), 50)->size(), 33U);
  EXPECT_EQ(take_share(h100(), 0.1)->size(), 1U);
  EXPECT_EQ(take_share(h100(), 100)->size(), 66U);
  EXPECT_EQ(take_sms(h100(), 132)->size(), 66U);
  EXPECT_EQ(*take_sms(interleaved(6, 3), 4), (gpu::TpcSet{0, 3}));  // one GPC before the next
}

TEST(Take, shares_that_do_not_exist_are_refused_in_the_words_asked) {
  for (const double percent : {0.0, -1.0, 100.5, std::nan("")}) {
    EXPECT_THAT(take_share(h100(), percent).error().message, HasSubstr("a share of ")) << percent;
  }
  EXPECT_THAT(take_sms(h100(), 133).error().message, HasSubstr("this GPU has 132"));
  EXPECT_FALSE(take_sms(h100(), 0));
}

TEST(Cluster, must_fit_into_one_gpc_of_the_set) {
  const auto topology = h100();
  EXPECT_EQ(largest_cluster(topology, all_tpcs(topology), 1), 18U);
  // Two TPCs of one GPC and two of another: four SMs at most in one.
  const gpu::TpcSet scattered{0, 1, 4, 5};
  EXPECT_TRUE(check_cluster(topology, scattered, 4, 1));
  EXPECT_TRUE(check_cluster(topology, scattered, 8, 2));
  EXPECT_FALSE(check_cluster(topology, scattered, 5, 1));
  EXPECT_EQ(largest_cluster(topology, scattered, 0), 4U);  // at least one block per SM
  const auto refused = check_cluster(topology, scattered, 8, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("clusters of 8 blocks cannot run on the TPCs "
                                                 "0-1,4-5: the largest GPC of the set holds 4"));
}

TEST(Cluster, tpcs_that_the_gpu_does_not_have_hold_nothing) {
  const auto topology = interleaved(4, 2);
  EXPECT_EQ(largest_cluster(topology, {4}, 1), 0U);
  EXPECT_EQ(sm_count(topology, {3, 4, 127}), 2U);
}

}  // namespace
}  // namespace demarc::partition
