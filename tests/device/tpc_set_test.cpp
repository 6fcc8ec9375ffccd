// Tests sets of TPCs: members, texts that are read back, SMs and GPCs.
#include "demarc/device/tpc_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/device/device.hpp"
#include "sms.hpp"

namespace demarc::gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Topology h100() {
  return find_device("h100-sxm").value().topology;
}

// TPCs of this many GPCs, dealt out in turn: no GPC's TPCs are neighbours. SMs are numbered from
// the end.
Topology interleaved(std::uint32_t tpcs, std::uint32_t gpcs) {
  Topology topology;
  for (std::uint32_t t = 0; t < tpcs; ++t) {
    Tpc tpc;
    tpc.gpc = GpcIndex(t % gpcs);
    tpc.side = t % gpcs % 2;
    tpc.sms = test::sm_list({2 * (tpcs - t) - 2, 2 * (tpcs - t) - 1});
    topology.tpcs.push_back(tpc);
  }
  return topology;
}

// In how many of the ways that name a TPC, an SM or a GPC a number can stand.
template <class T>
constexpr int as_tpc = requires(TpcSet set, T number) {
  set.insert(number);
}
+ requires(TpcSet set, T number) {
  set.erase(number);
}
+ requires(TpcSet set, T number) {
  set.contains(number);
}
+ requires(Topology topology, T number) {
  topology.tpcs[number];
};
template <class T>
constexpr int as_sm = requires(Topology topology, T number) {
  topology.tpc_of_sm(number);
}
+ requires(Tpc tpc, T number) {
  tpc.sms.push_back(number);
};
template <class T>
constexpr int as_gpc = requires(Topology topology, T number) {
  topology.tpcs_of_gpc(number);
}
+ requires(Tpc tpc, T number) {
  tpc.gpc = number;
};
static_assert(as_tpc<TpcIndex> == 4 && as_sm<SmIndex> == 2 && as_gpc<GpcIndex> == 2);
static_assert(as_tpc<SmIndex> + as_tpc<GpcIndex> + as_tpc<std::uint32_t> + as_tpc<int> == 0);
static_assert(as_sm<TpcIndex> + as_sm<GpcIndex> + as_sm<std::uint32_t> + as_sm<int> == 0);
static_assert(as_gpc<SmIndex> + as_gpc<TpcIndex> + as_gpc<std::uint32_t> + as_gpc<int> == 0);
static_assert(std::is_convertible_v<TpcIndex, TpcSet::Listed> &&
              !std::is_convertible_v<SmIndex, TpcSet::Listed> &&
              !std::is_convertible_v<GpcIndex, TpcSet::Listed>);
static_assert(sizeof(TpcIndex) == 4 && sizeof(TpcSet) == 16);

TEST(TpcSet, holds_all_of_128_members) {
  TpcSet set;
  set.insert(TpcIndex(0));
  set.insert(TpcIndex(127));
  set.insert(TpcIndex(128));  // outside: ignored
  EXPECT_THAT(set, ElementsAre(TpcIndex(0), TpcIndex(127)));
  EXPECT_TRUE(set.contains(TpcIndex(127)));
  EXPECT_FALSE(set.contains(TpcIndex(128)));
  set.erase(TpcIndex(0));
  EXPECT_EQ(set.size(), 1U);
}

TEST(TpcSet, is_written_as_ranges_and_read_back) {
  EXPECT_EQ(to_string(TpcSet{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(to_string(TpcSet{}), "none");
  EXPECT_EQ(to_string(TpcSet::first(128)), "0-127");
  EXPECT_EQ(*parse_tpc_set("0-3,8,10-11", 66, "--tpcs"), (TpcSet{0, 1, 2, 3, 8, 10, 11}));
}

TEST(TpcSet, a_list_beyond_the_gpu_names_the_option) {
  const auto set = parse_tpc_set("60-66", 66, "--tpcs");
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message, HasSubstr("--tpcs"));
  EXPECT_TRUE(parse_tpc_set("60-65", 66, "--tpcs"));
  EXPECT_FALSE(parse_tpc_set("", 66, "--tpcs"));
  EXPECT_THAT(parse_tpc_set("0", 0, "--tpcs").error().message, HasSubstr("--tpcs: the GPU has no"));
  EXPECT_FALSE(parse_tpc_set("128", 130, "--tpcs"));  // wider than the mask
}

TEST(TpcSet, sms_are_given_in_their_own_order) {
  EXPECT_EQ(sms_of(interleaved(4, 2), {0, 3}), test::sm_list({0, 1, 6, 7}));
  EXPECT_EQ(sm_count(interleaved(4, 2), {0, 3}), 4U);
}

RC_GTEST_PROP(TpcSet, every_set_is_read_back_from_its_text,
              (std::uint64_t low, std::uint64_t high)) {
  const TpcSet set = TpcSet::from_words(low, high);
  RC_PRE(!set.empty());
  RC_ASSERT(*parse_tpc_set(to_string(set), 128, "x") == set);
  const std::vector<TpcIndex> members(set.begin(), set.end());
  RC_ASSERT(members.size() == set.size());
  RC_ASSERT(std::is_sorted(members.begin(), members.end()));
  RC_ASSERT(TpcSet::of(members) == set);
}

TEST(Gpcs, a_list_of_gpcs_is_their_tpcs) {
  EXPECT_EQ(*tpcs_of_gpcs(h100(), "0", "--gpcs"), TpcSet::first(4));
  EXPECT_EQ(sm_count(h100(), *tpcs_of_gpcs(h100(), "0,8-11", "--gpcs")), 16U);
  EXPECT_TRUE(tpcs_of_gpcs(h100(), "11", "--gpcs"));
  EXPECT_FALSE(tpcs_of_gpcs(h100(), "12", "--gpcs"));
  EXPECT_FALSE(tpcs_of_gpcs(h100(), "", "--gpcs"));
  EXPECT_THAT(tpcs_of_gpcs({}, "0", "--gpcs").error().message, HasSubstr("the GPU has no GPC"));
}

TEST(TpcSet, lists_end_with_the_last_tpc_of_the_gpu_or_of_the_mask) {
  EXPECT_EQ(*parse_tpc_set("65", 66, "--tpcs"), TpcSet{65});
  EXPECT_FALSE(parse_tpc_set("66", 66, "--tpcs"));
  EXPECT_EQ(*parse_tpc_set("127", 200, "--tpcs"), TpcSet{127});
  EXPECT_FALSE(parse_tpc_set("128", 200, "--tpcs")) << "no mask holds it";
  EXPECT_THAT(parse_tpc_set("0", 0, "--tpcs").error().message, HasSubstr("the GPU has no TPC"));
}

TEST(TpcSet, members_behind_the_mask_neither_come_nor_go) {
  TpcSet set = TpcSet::first(200);
  EXPECT_EQ(set.size(), 128U);
  set.erase(TpcIndex(128));
  set.erase(TpcIndex(255));
  EXPECT_EQ(set.size(), 128U);
  EXPECT_EQ(set.words()[0], ~std::uint64_t{0});
  EXPECT_EQ(set.words()[1], ~std::uint64_t{0});
}

TEST(TpcSet, union_intersection_and_difference_count_both_words) {
  const TpcSet a{1, 2, 70};
  const TpcSet b{2, 3, 70, 71};
  EXPECT_EQ(a | b, (TpcSet{1, 2, 3, 70, 71}));
  EXPECT_EQ(a & b, (TpcSet{2, 70}));
  EXPECT_EQ(a - b, TpcSet{1});
  EXPECT_EQ(b - a, (TpcSet{3, 71}));
  EXPECT_TRUE((TpcSet{2, 70}).is_subset_of(a));
  EXPECT_FALSE(b.is_subset_of(a));
  EXPECT_FALSE((TpcSet{70}).empty());
}

TEST(TpcSet, its_sms_are_ascending_whatever_the_order_of_tpcs) {
  auto topology = regular_topology(1, 3, 2);
  std::swap(topology.tpcs.front().sms, topology.tpcs.back().sms);
  EXPECT_EQ(sms_of(topology, {0, 2}), test::sm_list({0, 1, 4, 5}));
  EXPECT_EQ(sm_count(topology, {1}), 2U);
  EXPECT_THAT(sms_of(topology, {}), testing::IsEmpty());
}

}  // namespace
}  // namespace demarc::gpu
