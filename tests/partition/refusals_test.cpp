// The borders of what a partition may be: what is just taken, and what is just refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "demarc/device/device.hpp"
#include "demarc/partition/partition.hpp"
#include "sms.hpp"
#include "split_check.hpp"

namespace demarc::partition {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two SMs a TPC, TPC t in gpcs[t] and, where given, on sides[t].
gpu::Topology topology_of(const std::vector<std::uint32_t>& gpcs,
                          const std::vector<std::uint32_t>& sides = {}) {
  gpu::Topology topology;
  for (std::uint32_t t = 0; t < gpcs.size(); ++t) {
    gpu::Tpc tpc;
    tpc.gpc = gpu::GpcIndex(gpcs[t]);
    if (!sides.empty()) tpc.side = sides[t];
    tpc.sms = test::sm_list({2 * t, 2 * t + 1});
    topology.tpcs.push_back(tpc);
  }
  return topology;
}

std::vector<gpu::TpcSet> sets_of(const gpu::Topology& topology, std::uint32_t parts,
                                 SplitStrategy strategy) {
  std::vector<gpu::TpcSet> sets;
  const auto result = split(topology, parts, strategy);
  EXPECT_TRUE(result) << result.error().message;
  if (!result) return sets;
  for (const Partition& part : *result) sets.push_back(part.tpcs);
  return sets;
}

// TPCs whose order is not that of their GPCs, as on a card whose GPCs are unequal.
const std::vector<std::uint32_t> dealt_gpcs = {0, 1, 2, 0, 1, 2, 0};

TEST(Split, packed_follows_the_gpcs_and_not_the_order_of_tpcs) {
  EXPECT_THAT(sets_of(topology_of(dealt_gpcs), 2, SplitStrategy::packed),
              ElementsAre(gpu::TpcSet{0, 3, 6, 1}, gpu::TpcSet{2, 4, 5}));
}

TEST(Split, distributed_deals_every_gpc_out_in_turn) {
  EXPECT_THAT(sets_of(topology_of({0, 0, 0, 0, 1, 1, 1, 1}), 2, SplitStrategy::distributed),
              ElementsAre(gpu::TpcSet{0, 2, 4, 6}, gpu::TpcSet{1, 3, 5, 7}));
}

TEST(Split, gpc_aligned_parts_are_as_equal_as_whole_gpcs_allow) {
  // GPCs of 2, 2 and 4 TPCs: the large one makes a half.
  EXPECT_THAT(sets_of(topology_of({0, 0, 1, 1, 2, 2, 2, 2}), 2, SplitStrategy::gpc_aligned),
              ElementsAre(gpu::TpcSet{4, 5, 6, 7}, gpu::TpcSet{0, 1, 2, 3}));
}

TEST(Split, side_aware_follows_the_side_and_then_the_gpc) {
  EXPECT_THAT(
      sets_of(topology_of({0, 1, 0, 1, 2, 3, 2, 3}, {1, 0, 1, 0, 1, 0, 1, 0}), 4,
              SplitStrategy::side_aware),
      ElementsAre(gpu::TpcSet{1, 3}, gpu::TpcSet{5, 7}, gpu::TpcSet{0, 2}, gpu::TpcSet{4, 6}));
}

TEST(Split, side_aligned_takes_twice_the_gpcs_of_the_smaller_side_and_no_more) {
  // Side 0 has the GPCs 0 and 1, side 1 the GPCs 2, 3 and 4.
  const auto topology = topology_of({0, 1, 2, 3, 4}, {0, 0, 1, 1, 1});
  EXPECT_THAT(sets_of(topology, 4, SplitStrategy::side_aligned),
              ElementsAre(gpu::TpcSet{0}, gpu::TpcSet{1}, gpu::TpcSet{2, 4}, gpu::TpcSet{3}));
  const auto more =
      split(topology_of({0, 1, 2, 3, 4, 5}, {0, 0, 1, 1, 1, 1}), 6, SplitStrategy::side_aligned);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "6 parts cannot be side-aligned: L2 side 0 has 2 GPCs");
  EXPECT_THAT(split(topology, 3, SplitStrategy::side_aligned).error().message,
              HasSubstr("3 parts cannot be side-aligned: their number must be even"));
}

TEST(Split, one_tpc_without_a_side_is_enough_to_refuse_sides) {
  auto topology = topology_of({0, 1, 2, 3}, {0, 0, 1, 1});
  topology.tpcs[gpu::TpcIndex(2)].side.reset();
  for (const auto strategy : {SplitStrategy::side_aware, SplitStrategy::side_aligned}) {
    const auto refused = split(topology, 2, strategy);
    ASSERT_FALSE(refused) << to_string(strategy);
    EXPECT_EQ(refused.error().kind, ErrorKind::missing_capability);
    EXPECT_THAT(refused.error().message, HasSubstr(to_string(strategy)));
  }
}

TEST(Split, takes_as_many_parts_as_tpcs_and_at_least_one) {
  const auto topology = gpu::regular_topology(2, 2, 2);
  EXPECT_EQ(sets_of(topology, 4, SplitStrategy::packed).size(), 4U);
  EXPECT_THAT(split(topology, 5, SplitStrategy::packed).error().message, HasSubstr("give 1 to 4"));
  EXPECT_THAT(split(topology, 0, SplitStrategy::packed).error().message, HasSubstr("give 1 to 4"));
  EXPECT_TRUE(split(topology, 2, SplitStrategy::gpc_aligned));
  EXPECT_THAT(split(topology, 3, SplitStrategy::gpc_aligned).error().message, HasSubstr("2 GPCs"));
}

TEST(Split, a_gpu_with_more_tpcs_than_a_mask_holds_is_refused) {
  EXPECT_TRUE(split(gpu::regular_topology(1, 128, 1), 2, SplitStrategy::packed));
  EXPECT_EQ(split(gpu::regular_topology(1, 129, 1), 2, SplitStrategy::packed).error().message,
            "the GPU has 129 TPCs, but masks have room for 128");
}

TEST(Split, colours_are_shared_out_in_equal_runs_that_do_not_meet) {
  const auto topology = gpu::regular_topology(2, 4, 2);
  const auto colors_of = [&](std::uint32_t parts, std::uint32_t colors) {
    std::vector<std::uint64_t> masks;
    const auto result = split(topology, parts, SplitStrategy::packed, colors);
    EXPECT_TRUE(result) << parts << " " << colors;
    for (const Partition& part : *result) masks.push_back(part.colors.members());
    return masks;
  };
  EXPECT_THAT(colors_of(2, 8), ElementsAre(0x0fU, 0xf0U));
  EXPECT_THAT(colors_of(4, 4), ElementsAre(1U, 2U, 4U, 8U));
  EXPECT_THAT(colors_of(2, 64), ElementsAre(0xffffffffU, 0xffffffff00000000U));
  EXPECT_THAT(colors_of(1, 64), ElementsAre(~std::uint64_t{0}));
  EXPECT_THAT(colors_of(2, 0), ElementsAre(0U, 0U)) << "memory is not divided";
  for (const std::uint32_t colors : {1U, 7U, 66U, 128U}) {
    EXPECT_THAT(split(topology, 2, SplitStrategy::packed, colors).error().message,
                HasSubstr(fmt::format("{} colours cannot be divided equally", colors)));
  }
}

TEST(Split, every_strategy_is_read_back_from_its_name_and_no_other_name_is) {
  for (const auto strategy :
       {SplitStrategy::packed, SplitStrategy::distributed, SplitStrategy::gpc_aligned,
        SplitStrategy::side_aware, SplitStrategy::side_aligned}) {
    EXPECT_EQ(*parse_split_strategy(to_string(strategy)), strategy);
    EXPECT_THAT(parse_split_strategy("side").error().message, HasSubstr(to_string(strategy)));
  }
  EXPECT_FALSE(parse_split_strategy(""));
}

TEST(Check, parts_that_are_not_neighbours_in_the_list_are_compared_too) {
  const test::SplitReport report =
      test::check_split(gpu::regular_topology(3, 1, 2),
                        {{"a", {0}, {1, 4}, 0}, {"b", {1}, {2, 4}, 0}, {"c", {0, 2}, {5, 4}, 0}});
  EXPECT_FALSE(report.sound());
  EXPECT_THAT(report.faults, ElementsAre("partitions 'a' and 'c' share the TPCs 0",
                                         "partitions 'a' and 'c' share the memory colours 0 of 4"));
}

TEST(Check, one_colour_in_common_is_a_fault_also_where_the_tpcs_are_apart) {
  const auto topology = gpu::regular_topology(2, 1, 2);
  const std::uint64_t last = std::uint64_t{1} << 63U;
  EXPECT_FALSE(
      test::check_split(topology, {{"a", {0}, {last | 1, 64}, 0}, {"b", {1}, {last | 2, 64}, 0}})
          .sound());
  EXPECT_TRUE(
      test::check_split(topology, {{"a", {0}, {last, 64}, 0}, {"b", {1}, {last - 1, 64}, 0}})
          .sound());
}

TEST(Check, a_tpc_just_behind_the_last_is_a_fault) {
  const auto topology = gpu::regular_topology(2, 2, 2);
  EXPECT_TRUE(test::check_split(topology, {{"a", {3}, {}, 0}}).sound());
  const test::SplitReport report = test::check_split(topology, {{"a", {3, 4}, {}, 0}});
  EXPECT_THAT(report.faults, ElementsAre("partition 'a' names the TPCs 4; the GPU has 0-3"));
  EXPECT_EQ(report.unused, (gpu::TpcSet{0, 1, 2}));
}

TEST(Check, a_gpc_of_one_part_is_not_shared) {
  const auto topology = gpu::regular_topology(3, 2, 2);
  const test::SplitReport report =
      test::check_split(topology, {{"a", {0, 1, 2}, {}, 0}, {"b", {3, 4, 5}, {}, 0}});
  EXPECT_THAT(report.shared_gpcs, ElementsAre(gpu::GpcIndex(1)));
  EXPECT_TRUE(report.unused.empty());
}

TEST(Take, a_share_is_at_least_what_was_asked_for_and_less_than_a_tpc_more) {
  for (const auto& topology : {gpu::find_device("h100-sxm").value().topology,
                               gpu::regular_topology(3, 3, 1), gpu::regular_topology(7, 1, 2)}) {
    const double total = topology.sm_count();
    const double largest_tpc = static_cast<double>(topology.tpcs.front().sms.size());
    for (int tenth = 1; tenth <= 1000; ++tenth) {
      const double wanted = tenth * total / 1000;
      const double given = sm_count(topology, *take_share(topology, tenth / 10.0));
      ASSERT_GE(given, wanted - 1e-6) << tenth / 10.0 << " % of " << total << " SMs";
      ASSERT_LT(given, wanted + largest_tpc) << tenth / 10.0 << " % of " << total << " SMs";
    }
  }
}

// 100 x 9 / 108 is not a binary fraction: its product with 108 / 100 lies a little above 9.
TEST(Take, a_share_that_is_a_whole_number_of_sms_is_not_rounded_up) {
  const auto topology = gpu::regular_topology(1, 54, 2);
  for (std::uint32_t sms = 1; sms <= 108; ++sms)
    EXPECT_EQ(*take_share(topology, 100.0 * sms / 108), *take_sms(topology, sms)) << sms;
}

TEST(Take, a_share_that_is_no_share_is_refused) {
  const auto topology = gpu::regular_topology(2, 2, 2);
  for (const double percent : {0.0, -1.0, 100.001, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
    const auto refused = take_share(topology, percent);
    ASSERT_FALSE(refused) << percent;
    EXPECT_THAT(refused.error().message, HasSubstr("give more than 0 and at most 100"));
  }
}

TEST(Take, sms_are_taken_from_the_first_gpc_on_and_none_or_too_many_are_refused) {
  const auto topology = topology_of(dealt_gpcs);
  EXPECT_EQ(*take_sms(topology, 1), gpu::TpcSet{0});
  EXPECT_EQ(*take_sms(topology, 2), gpu::TpcSet{0});
  EXPECT_EQ(*take_sms(topology, 3), (gpu::TpcSet{0, 3}));
  EXPECT_EQ(*take_sms(topology, 7), (gpu::TpcSet{0, 3, 6, 1}));
  EXPECT_EQ(take_sms(topology, 14)->size(), 7U);
  EXPECT_EQ(take_sms(topology, 3, {0}), (gpu::TpcSet{3, 6}));
  EXPECT_EQ(take_share(topology, 100.0 * 3 / 14, {0}), (gpu::TpcSet{3, 6}));
  EXPECT_EQ(take_sms(topology, 12, {0})->size(), 6U);
  EXPECT_EQ(take_sms(topology, 13, {0}).error().message,
            "13 SMs were asked for, but 12 of 14 are free");
  EXPECT_EQ(take_sms(topology, 13, {0}).error().kind, ErrorKind::missing_capability);
  EXPECT_EQ(take_sms(topology, 0).error().message, "0 SMs were asked for; this GPU has 14");
  EXPECT_EQ(take_sms(topology, 15).error().message, "15 SMs were asked for; this GPU has 14");
}

TEST(Cluster, one_block_more_than_the_gpc_holds_is_refused) {
  const auto topology = gpu::regular_topology(2, 2, 2);
  const gpu::TpcSet all = all_tpcs(topology);
  EXPECT_TRUE(check_cluster(topology, all, 4, 1));
  EXPECT_FALSE(check_cluster(topology, all, 5, 1));
  EXPECT_TRUE(check_cluster(topology, all, 12, 3));
  EXPECT_FALSE(check_cluster(topology, all, 13, 3));
  EXPECT_EQ(largest_cluster(topology, all, 0), 4U) << "an SM holds one block at least";
  EXPECT_EQ(largest_cluster(topology, {}, 1), 0U);
  EXPECT_FALSE(check_cluster(topology, {}, 1, 1));
}

TEST(Gpcs, a_gpc_behind_the_last_and_an_empty_list_are_refused_by_the_option) {
  const auto topology = gpu::regular_topology(3, 2, 2);
  EXPECT_EQ(*gpu::tpcs_of_gpcs(topology, "0,2", "--gpcs"), (gpu::TpcSet{0, 1, 4, 5}));
  EXPECT_THAT(gpu::tpcs_of_gpcs(topology, "3", "--gpcs").error().message, HasSubstr("--gpcs"));
  EXPECT_THAT(gpu::tpcs_of_gpcs(topology, "", "--gpcs").error().message, HasSubstr("--gpcs"));
  EXPECT_THAT(gpu::tpcs_of_gpcs({}, "0", "--gpcs").error().message,
              HasSubstr("the GPU has no GPC"));
}

}  // namespace
}  // namespace demarc::partition
