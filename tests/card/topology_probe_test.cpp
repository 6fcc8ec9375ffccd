// Tests that GPCs and L2 sides of planted GPUs are found, and contradictions named.
#include "topology_probe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "demarc/base/random.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A planted GPU: GPC of each TPC in logical order, bits `stride` apart.
struct Planted {
  std::vector<std::uint32_t> gpc;
  TopologyEvidence evidence;
};

// Clusters as the hardware gives them: at random, within a GPC, so that after a few all TPCs of a
// GPC are joined.
void add_clusters(Planted& planted, Random& random, std::uint32_t count) {
  for (std::uint32_t c = 0; c < count; ++c) {
    const auto tpc = static_cast<std::uint32_t>(random.below(planted.gpc.size()));
    std::vector<gpu::SmIndex> cluster = test::sm_list({2 * tpc, 2 * tpc + 1});
    for (std::uint32_t t = 0; t < planted.gpc.size(); ++t) {
      if (t != tpc && planted.gpc[t] == planted.gpc[tpc] && random.below(2) == 0) {
        cluster.emplace_back(2 * t);
      }
    }
    planted.evidence.clusters.push_back(std::move(cluster));
  }
}

Planted planted_gpu(std::uint64_t seed) {
  Random random(seed);
  Planted planted;
  const auto gpcs = static_cast<std::uint32_t>(2 + random.below(7));
  const auto stride = static_cast<std::uint32_t>(8 + random.below(3));
  std::vector<std::uint32_t> used(gpcs, 0);
  for (std::uint32_t g = 0; g < gpcs; ++g) {
    for (std::uint32_t i = 0; i < 4 + random.below(4); ++i) planted.gpc.push_back(g);
  }
  for (std::size_t i = planted.gpc.size(); i > 1; --i) {
    std::swap(planted.gpc[i - 1], planted.gpc[random.below(i)]);
  }
  for (const std::uint32_t g : planted.gpc) {
    planted.evidence.bits.push_back(g * stride + used[g]++);
  }
  planted.evidence.sms = static_cast<std::uint32_t>(2 * planted.gpc.size());
  planted.evidence.bits_per_gpc = stride;
  add_clusters(planted, random, 600);
  return planted;
}

bool same_groups(const gpu::Topology& topology, const std::vector<std::uint32_t>& gpc) {
  for (std::uint32_t a = 0; a < gpc.size(); ++a) {
    for (std::uint32_t b = 0; b < gpc.size(); ++b) {
      const bool same = topology.tpcs[gpu::TpcIndex(a)].gpc == topology.tpcs[gpu::TpcIndex(b)].gpc;
      if (same != (gpc[a] == gpc[b])) return false;
    }
  }
  return true;
}

RC_GTEST_PROP(Topology, planted_gpcs_are_found_by_both_ways_and_by_either, (std::uint64_t seed)) {
  const Planted planted = planted_gpu(seed);
  const auto both = conclude_topology(planted.evidence);
  RC_ASSERT(both.has_value());
  RC_ASSERT(same_groups(both->topology, planted.gpc));
  RC_ASSERT(both->unconfirmed.empty());
  TopologyEvidence clusters = planted.evidence;
  clusters.bits.clear();
  RC_ASSERT(same_groups(conclude_topology(clusters)->topology, planted.gpc));
  TopologyEvidence descriptors = planted.evidence;
  descriptors.clusters.clear();
  RC_ASSERT(same_groups(conclude_topology(descriptors)->topology, planted.gpc));
}

RC_GTEST_PROP(Topology, a_cluster_across_two_gpcs_is_a_contradiction, (std::uint64_t seed)) {
  Planted planted = planted_gpu(seed);
  std::uint32_t other = 1;
  while (planted.gpc[other] == planted.gpc[0]) ++other;
  planted.evidence.clusters.push_back(test::sm_list({0, 2 * other}));
  const auto finding = conclude_topology(planted.evidence);
  RC_ASSERT(!finding.has_value());
  RC_ASSERT(finding.error().kind == ErrorKind::check_failed);
}

TEST(Topology, of_the_measured_h100_has_eight_gpcs_and_four_singles) {
  // Logical order goes round the GPCs; four TPCs lie apart and never share a cluster.
  Planted planted;
  const std::uint32_t sizes[] = {4, 8, 8, 8, 8, 8, 9, 9};
  for (std::uint32_t slot = 0; slot < 9; ++slot) {
    for (std::uint32_t g = 0; g < 8; ++g) {
      if (slot >= sizes[g]) continue;
      planted.gpc.push_back(g);
      planted.evidence.bits.push_back(9 * g + slot);
    }
  }
  std::uint32_t single = 8;
  for (const std::uint32_t bit : {75U, 78U, 81U, 83U}) {
    planted.gpc.push_back(single++);
    planted.evidence.bits.push_back(bit);
  }
  planted.evidence.sms = 132;
  planted.evidence.bits_per_gpc = 9;
  Random random(5);
  add_clusters(planted, random, 2000);
  const auto finding = conclude_topology(planted.evidence);
  ASSERT_TRUE(finding) << finding.error().message;
  EXPECT_EQ(finding->topology.gpc_count(), 12U);
  EXPECT_TRUE(same_groups(finding->topology, planted.gpc));
}

TEST(Topology, a_tpc_that_never_joined_a_large_cluster_keeps_its_descriptors_gpc) {
  TopologyEvidence evidence;
  evidence.sms = 12;
  evidence.bits = {0, 1, 2, 9, 10, 11};
  evidence.bits_per_gpc = 9;
  evidence.clusters = {test::sm_list({0, 2}), test::sm_list({6, 8, 10})};  // TPC 2 in none
  const auto finding = conclude_topology(evidence);
  ASSERT_TRUE(finding) << finding.error().message;
  EXPECT_EQ(finding->topology.tpcs[gpu::TpcIndex(2)].gpc, gpu::GpcIndex(0));
  EXPECT_THAT(finding->unconfirmed, ElementsAre(gpu::TpcIndex(2)));
}

TEST(Topology, a_cluster_makes_a_gpc_of_two_tpcs_and_without_one_they_stand_alone) {
  TopologyEvidence evidence;
  evidence.sms = 12;
  evidence.bits = {0, 1, 9, 10, 18, 19};
  evidence.bits_per_gpc = 9;
  evidence.clusters = {test::sm_list({0, 2}), test::sm_list({4, 6})};
  const auto finding = conclude_topology(evidence);
  ASSERT_TRUE(finding) << finding.error().message;
  EXPECT_TRUE(same_groups(finding->topology, {0, 0, 1, 1, 2, 3}));
  EXPECT_THAT(finding->unconfirmed, testing::IsEmpty());
  EXPECT_EQ(finding->topology.tpcs[gpu::TpcIndex(3)].bit, 10U);
}

TEST(Topology, what_cannot_be_is_refused) {
  TopologyEvidence evidence;
  EXPECT_THAT(conclude_topology(evidence).error().message, HasSubstr("a GPU without SMs"));
  evidence.sms = 8;
  evidence.sms_per_tpc = 0;
  EXPECT_FALSE(conclude_topology(evidence));
  evidence.sms_per_tpc = 2;
  evidence.bits = {0, 1, 2};
  EXPECT_THAT(conclude_topology(evidence).error().message,
              HasSubstr("3 hardware bits were given for 4 TPCs"));
  evidence.bits.clear();
  evidence.clusters = {test::sm_list({0, 8})};
  EXPECT_THAT(conclude_topology(evidence).error().message,
              HasSubstr("a cluster ran on SM 8, but the GPU has 8 SMs"));
  evidence.clusters = {test::sm_list({0, 7})};
  EXPECT_TRUE(conclude_topology(evidence));
}

TEST(Topology, the_contradiction_names_the_tpcs_and_their_bits) {
  TopologyEvidence evidence;
  evidence.sms = 8;
  evidence.bits = {0, 1, 9, 10};
  evidence.bits_per_gpc = 9;
  evidence.clusters = {test::sm_list({0, 2}), test::sm_list({2, 4})};
  EXPECT_THAT(
      conclude_topology(evidence).error().message,
      HasSubstr("TPCs 0 and 2 did run in one cluster, but their descriptor bits 0 and 9 lie "
                "in different groups of 9 bits"));
  evidence.bits = {0, 1, 2, 3};
  evidence.clusters = {test::sm_list({0, 2}), test::sm_list({4, 6})};
  EXPECT_THAT(conclude_topology(evidence).error().message,
              HasSubstr("TPCs 0 and 2 never run in one cluster, but their descriptor bits 0 and 2 "
                        "lie in one group of 9 bits"));
}

// Where it is not known how many bits a GPC takes, the clusters tell.
TEST(Topology, the_bits_of_a_gpc_are_found_by_its_clusters) {
  TopologyEvidence evidence;
  evidence.sms = 16;
  evidence.bits = {0, 1, 2, 5, 6, 7, 10, 11};
  evidence.clusters = {test::sm_list({0, 2, 4}), test::sm_list({6, 8, 10}),
                       test::sm_list({12, 14})};
  const auto finding = conclude_topology(evidence);
  ASSERT_TRUE(finding) << finding.error().message;
  EXPECT_TRUE(same_groups(finding->topology, {0, 0, 0, 1, 1, 1, 2, 2}));
  evidence.bits[gpu::TpcIndex(1)] = 40;
  EXPECT_THAT(conclude_topology(evidence).error().message, HasSubstr("different groups of 8 bits"));
}

TEST(Topology, a_gpc_has_32_bits_at_most) {
  TopologyEvidence evidence;
  evidence.sms = 8;
  evidence.bits = {0, 31, 32, 33};
  evidence.clusters = {test::sm_list({0, 2}), test::sm_list({4, 6})};
  const auto finding = conclude_topology(evidence);
  ASSERT_TRUE(finding) << finding.error().message;
  EXPECT_TRUE(same_groups(finding->topology, {0, 0, 1, 1}));
  evidence.bits = {0, 32, 33, 34};
  EXPECT_FALSE(conclude_topology(evidence));
}

TEST(Topology, bits_alone_tell_no_gpcs_where_nobody_knows_how_many_a_gpc_takes) {
  TopologyEvidence evidence;
  evidence.sms = 8;
  evidence.bits = {0, 1, 9, 10};
  const auto finding = conclude_topology(evidence).value();
  EXPECT_EQ(finding.topology.gpc_count(), 1U);
  EXPECT_THAT(finding.notes.at(0), HasSubstr("neither descriptors nor clusters"));
  evidence.bits_per_gpc = 9;
  EXPECT_EQ(conclude_topology(evidence)->topology.gpc_count(), 2U);
}

TEST(Topology, a_single_tpc_is_no_contradiction_wherever_it_stands) {
  TopologyEvidence evidence;
  evidence.sms = 6;
  evidence.bits = {0, 1, 2};
  evidence.bits_per_gpc = 9;
  evidence.clusters = {test::sm_list({2, 4})};  // TPC 0 in none
  const auto finding = conclude_topology(evidence);
  ASSERT_TRUE(finding) << finding.error().message;
  EXPECT_TRUE(same_groups(finding->topology, {0, 0, 0}));
  EXPECT_THAT(finding->unconfirmed, ElementsAre(gpu::TpcIndex(0)));
  evidence.bits = {0, 9, 18};
  EXPECT_THAT(conclude_topology(evidence).error().message, HasSubstr("TPCs 1 and 2 did run"))
      << "neighbours are compared too";
}

TEST(Topology, the_last_tpc_of_an_odd_number_of_sms_has_one) {
  TopologyEvidence evidence;
  evidence.sms = 9;
  const auto finding = conclude_topology(evidence).value();
  ASSERT_EQ(finding.topology.tpc_count(), 5U);
  EXPECT_EQ(finding.topology.tpcs[gpu::TpcIndex(3)].sms, test::sm_list({6, 7}));
  EXPECT_EQ(finding.topology.tpcs[gpu::TpcIndex(4)].sms, test::sm_list({8}));
}

// Two sides, 12 cycles apart, for 8 SMs over 8 lines.
SmLatencies two_sides(const std::vector<std::uint32_t>& side_of_sm) {
  SmLatencies latency;
  for (std::size_t sm = 0; sm < side_of_sm.size(); ++sm) {
    std::vector<double> row;
    for (std::uint32_t line = 0; line < 8; ++line) {
      row.push_back(280 + (line % 2 == side_of_sm[sm] ? 0 : 12) +
                    0.1 * static_cast<double>((sm * 3 + line * 5) % 7));
    }
    latency.push_back(std::move(row));
  }
  return latency;
}

TEST(Topology, sides_are_those_of_whole_tpcs_and_open_elsewhere) {
  TopologyEvidence evidence;
  evidence.sms = 8;
  evidence.latency = two_sides({0, 0, 1, 1, 1, 1, 0, 0});
  const auto whole = conclude_topology(evidence).value();
  EXPECT_EQ(whole.topology.tpcs[gpu::TpcIndex(0)].side, 0U);
  EXPECT_EQ(whole.topology.tpcs[gpu::TpcIndex(1)].side, 1U);
  EXPECT_EQ(whole.topology.tpcs[gpu::TpcIndex(2)].side, 1U);
  EXPECT_EQ(whole.topology.tpcs[gpu::TpcIndex(3)].side, 0U);
  EXPECT_EQ(whole.notes.size(), 1U) << "of the GPCs alone";
  evidence.latency = two_sides({0, 0, 1, 1, 1, 0, 0, 0});
  const auto torn = conclude_topology(evidence).value();
  EXPECT_EQ(torn.topology.tpcs[gpu::TpcIndex(1)].side, 1U);
  EXPECT_FALSE(torn.topology.tpcs[gpu::TpcIndex(2)].side);
  EXPECT_THAT(torn.notes.back(), HasSubstr("the SMs of some TPCs disagree"));
  evidence.latency[gpu::SmIndex(3)].clear();  // nothing was measured there
  const auto lacking = conclude_topology(evidence).value();
  EXPECT_FALSE(lacking.topology.tpcs[gpu::TpcIndex(0)].side);
  EXPECT_THAT(lacking.notes.back(), HasSubstr("the latencies do not fall into two groups"));
  evidence.latency.clear();
  EXPECT_EQ(conclude_topology(evidence)->notes.size(), 1U) << "nobody looked";
}

TEST(Sides, of_too_few_or_ragged_rows_are_not_guessed) {
  EXPECT_TRUE(find_sides(two_sides({0, 0, 1, 1})));
  EXPECT_FALSE(find_sides({}));
  EXPECT_FALSE(find_sides(two_sides({0, 1, 1})));
  EXPECT_FALSE(find_sides(two_sides({0, 0, 0, 1}))) << "one SM is no side";
  auto ragged = two_sides({0, 0, 1, 1});
  ragged[gpu::SmIndex(2)].pop_back();
  EXPECT_FALSE(find_sides(ragged));
  auto narrow = two_sides({0, 0, 1, 1});
  for (auto& row : narrow) row.resize(4);
  EXPECT_TRUE(find_sides(narrow));
  for (auto& row : narrow) row.resize(3);
  EXPECT_FALSE(find_sides(narrow));
}

TEST(Topology, without_any_evidence_it_says_so) {
  TopologyEvidence evidence;
  evidence.sms = 8;
  const auto finding = conclude_topology(evidence);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->topology.gpc_count(), 1U);
  ASSERT_FALSE(finding->notes.empty());
  EXPECT_THAT(finding->notes[0], HasSubstr("neither descriptors nor clusters"));
}

// Latencies of `sms` SMs, sides at random, with noise of 0.5 cycles.
SmLatencies planted_latency(Random& random, const PerIndex<gpu::SmIndex, std::uint32_t>& side) {
  constexpr std::size_t lines = 48;
  std::vector<double> near(lines);
  for (double& value : near) value = random.below(2) == 0 ? -12 : 12;
  SmLatencies latency;
  for (const std::uint32_t s : side) {
    const double own = 3 * random.normal();
    std::vector<double> row;
    for (std::size_t l = 0; l < lines; ++l) {
      row.push_back(280 + own + (s == 0 ? near[l] : -near[l]) + 3 * random.normal());
    }
    latency.push_back(std::move(row));
  }
  return latency;
}

RC_GTEST_PROP(Sides, planted_sides_are_found, (std::uint64_t seed)) {
  Random random(seed);
  PerIndex<gpu::SmIndex, std::uint32_t> side{0, 1, 1, 0};
  while (side.size() < 40) side.push_back(random.below(3) == 0 ? 1 : 0);
  const auto found = find_sides(planted_latency(random, side));
  RC_ASSERT(found.has_value());
  RC_ASSERT(found->side == side);
}

// SMs along one axis: two each `from_middle` to either side, one unit about that place.
TEST(Sides, stand_four_of_their_own_widths_apart_at_least) {
  const auto at = [](double from_middle) {
    SmLatencies latency;
    for (const double place :
         {-from_middle - 1, -from_middle + 1, from_middle - 1, from_middle + 1}) {
      latency.push_back({280 + place, 280 - place, 280 + place, 280 - place});
    }
    return find_sides(latency);
  };
  EXPECT_FALSE(at(1.9));
  const auto apart = at(2.1);
  ASSERT_TRUE(apart);
  EXPECT_NEAR(apart->separation, 4.2, 1e-9);
  EXPECT_THAT(apart->side, ElementsAre(0, 0, 1, 1));
}

TEST(Sides, are_found_among_sms_and_lines_that_are_slow_everywhere) {
  auto latency = two_sides({0, 1, 1, 0, 0, 1, 0, 1});
  for (const gpu::SmIndex sm : latency.keys()) {
    for (std::size_t line = 0; line < latency[sm].size(); ++line) {
      latency[sm][line] += static_cast<double>(40 * sm.raw() + 30 * line);
    }
  }
  const auto found = find_sides(latency);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->side, ElementsAre(0, 1, 1, 0, 0, 1, 0, 1));
  const SmLatencies alike(8, std::vector<double>(8, 280));
  EXPECT_FALSE(find_sides(alike));
}

TEST(Sides, noise_alone_is_not_two_sides) {
  Random random(3);
  SmLatencies latency(60, std::vector<double>(40));
  for (auto& row : latency) {
    for (double& value : row) value = 280 + 5 * random.normal();
  }
  EXPECT_FALSE(find_sides(latency));
}

}  // namespace
}  // namespace demarc::cuda
