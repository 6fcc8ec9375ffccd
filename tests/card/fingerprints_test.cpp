// Planted cards: latencies are known, so identification must find the truth or refuse.
#include "demarc/card/fingerprints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "demarc/base/random.hpp"
#include "demarc/device/slice_model.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

using testing::HasSubstr;

// What one physical page adds to the names of its slices.
struct PlantedPage {
  std::uint32_t flip = 0, constant = 0, shift = 0;
};

// As measured: TPCs of a GPC differ by an offset alone, GPCs slice by slice; the two SMs of a TPC
// do not differ.
struct PlantedCard {
  gpu::AddressMap map;
  gpu::Topology topology = gpu::regular_topology(3, 3, 2);
  PerIndex<gpu::TpcIndex, std::vector<double>> latency;  // [tpc][slice]
  std::vector<std::uint64_t> offsets;

  PlantedCard(gpu::AddressMap hash, std::uint32_t chunks, Random& random) : map(std::move(hash)) {
    const std::uint32_t slices = map.module.count() * map.stack->modulus;
    PerIndex<gpu::GpcIndex, std::vector<double>> of_gpc(topology.gpc_count());
    for (auto& row : of_gpc) {
      for (std::uint32_t s = 0; s < slices; ++s) row.push_back(250 + 60 * random.uniform());
    }
    for (const gpu::TpcIndex t : topology.tpcs.keys()) {
      latency.push_back(of_gpc[topology.tpcs[t].gpc]);
      for (double& value : latency.back()) value += 0.5 * t.raw();
    }
    offsets = gpu::sample_offsets(map.page_bytes, map.interleave_bytes, chunks);
  }

  [[nodiscard]] PlantedPage page(Random& random) const {
    PlantedPage page;
    page.flip = static_cast<std::uint32_t>(random.below(map.module.count()));
    page.shift = static_cast<std::uint32_t>(random.below(map.stack->modulus));
    const auto& rows = map.stack->number.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (std::popcount(rows[i]) > 1) {
        page.constant |= static_cast<std::uint32_t>(random.below(2)) << i;
      }
    }
    return page;
  }

  // Each chunk with noise, each SM with an offset of its own, as launches have them.
  [[nodiscard]] gpu::LatencyMatrix measure(const PlantedPage& page,
                                           const std::vector<gpu::SmIndex>& sms, double noise,
                                           double offset, Random& random) const {
    std::vector<double> own;
    for (std::size_t i = 0; i < sms.size(); ++i) own.push_back(offset * (2 * random.uniform() - 1));
    gpu::LatencyMatrix matrix;
    matrix.dimensions = static_cast<std::uint32_t>(sms.size());
    for (const std::uint64_t at : offsets) {
      const std::uint32_t remainder =
          ((map.stack->number(at) ^ page.constant) + page.shift) % map.stack->modulus;
      const std::uint32_t slice = (map.module(at) ^ page.flip) * map.stack->modulus + remainder;
      for (std::size_t i = 0; i < sms.size(); ++i) {
        const double value = latency[*topology.tpc_of_sm(sms[i])][slice];
        matrix.values.push_back(static_cast<float>(value + own[i] + noise * random.normal()));
      }
    }
    return matrix;
  }
};

std::vector<gpu::SmIndex> first_sms(std::size_t count) {
  const auto all = indices<gpu::SmIndex>(count);
  return {all.begin(), all.end()};
}

// Some TPCs, both SMs of each, in any order.
std::vector<gpu::SmIndex> some_sms(const PlantedCard& card, Random& random) {
  std::vector<gpu::SmIndex> sms;
  for (const gpu::Tpc& tpc : card.topology.tpcs) {
    if (random.below(3) == 0) sms.insert(sms.end(), tpc.sms.begin(), tpc.sms.end());
  }
  if (sms.empty()) sms = card.topology.tpcs[gpu::TpcIndex(4)].sms;
  for (std::size_t i = sms.size(); i > 1; --i) std::swap(sms[i - 1], sms[random.below(i)]);
  return sms;
}

Fingerprints reference_of(const PlantedCard& card, Random& random) {
  const auto sms = first_sms(card.topology.sm_count());
  return make_fingerprints(card.map, card.offsets,
                           card.measure(card.page(random), sms, 0.15, 0, random), sms)
      .value();
}

// 10 slices, named as those of an H100.
PlantedCard small_card(Random& random) {
  static const gpu::AddressMap map = [] {  // read once: all descriptions are parsed for it
    gpu::AddressMap whole = known_address_map("NVIDIA H100 80GB HBM3").value();
    whole.module.rows.resize(1);
    return whole;
  }();
  return {map, 192, random};
}

// Whether all SMs of another process, some of the card's, are told for certain and rightly.
bool tells_all(const PlantedCard& card, Random& random) {
  const auto truth = some_sms(card, random);
  const auto seen = make_fingerprints(card.map, card.offsets,
                                      card.measure(card.page(random), truth, 0.15, 0.08, random),
                                      first_sms(truth.size()));
  if (!seen) return false;
  const auto found = match_fingerprints(card.topology, reference_of(card, random), *seen);
  bool all = found && found->size() == truth.size();
  for (std::size_t i = 0; all && i < truth.size(); ++i) {
    const SmIdentity& sm = (*found)[i];
    all = sm.certain && sm.sm == gpu::SmIndex(i) && sm.tpc == card.topology.tpc_of_sm(truth[i]);
  }
  return all;
}

RC_GTEST_PROP(Fingerprints, of_another_page_identify_every_tpc_whatever_the_numbers,
              (std::uint64_t seed)) {
  Random random(seed);
  const PlantedCard card = small_card(random);
  RC_ASSERT(tells_all(card, random));
}

TEST(FingerprintMatch, works_with_the_hashes_of_the_measured_cards) {
  for (const char* name : {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}) {
    Random random(8);
    const PlantedCard card(known_address_map(name).value(), 2048, random);
    EXPECT_TRUE(tells_all(card, random)) << name;
  }
}

RC_GTEST_PROP(Fingerprints, under_any_noise_are_identified_rightly_or_not_at_all,
              (std::uint64_t seed)) {
  Random random(seed);
  const PlantedCard card = small_card(random);
  const auto truth = some_sms(card, random);
  const double noise = 12 * random.uniform() * random.uniform();
  const auto seen = make_fingerprints(
      card.map, card.offsets, card.measure(card.page(random), truth, noise, 0.15, random), truth);
  if (!seen) {
    RC_ASSERT(seen.error().kind == ErrorKind::check_failed);
    return;
  }
  const auto found = match_fingerprints(card.topology, reference_of(card, random), *seen).value();
  for (const SmIdentity& sm : found) {
    RC_ASSERT(!sm.certain || sm.tpc == card.topology.tpc_of_sm(sm.sm));
  }
}

// Cards of these seeds show an SM nearer to the TPC beside its own than to its own.
TEST(FingerprintMatch, a_tpc_that_the_noise_may_have_taken_for_another_is_in_doubt) {
  for (const std::uint64_t seed : {std::uint64_t{4504}, std::uint64_t{12694}}) {
    Random random(seed);
    const PlantedCard card = small_card(random);
    const auto truth = some_sms(card, random);
    const double noise = 12 * random.uniform() * random.uniform();
    auto seen =
        make_fingerprints(card.map, card.offsets,
                          card.measure(card.page(random), truth, noise, 0.15, random), truth)
            .value();
    const auto reference = reference_of(card, random);
    const auto wrong = [&] {
      const auto found = match_fingerprints(card.topology, reference, seen).value();
      return std::count_if(found.begin(), found.end(), [&](const SmIdentity& sm) {
        return sm.certain && sm.tpc != card.topology.tpc_of_sm(sm.sm);
      });
    };
    EXPECT_NEAR(seen.noise, 1.25 * noise / std::sqrt(19.2), 0.1 * noise);
    EXPECT_EQ(wrong(), 0);
    seen.noise = 0;
    EXPECT_GE(wrong(), 1) << "were the noise not known";
  }
}

TEST(FingerprintMatch, tpcs_that_look_alike_are_in_doubt_and_both_are_named) {
  Random random(3);
  PlantedCard card = small_card(random);
  const gpu::TpcIndex three(3), five(5);
  card.latency[five] = card.latency[three];
  const auto reference = reference_of(card, random);
  const auto seen = make_fingerprints(
      card.map, card.offsets,
      card.measure(card.page(random), test::sm_list({6, 0}), 0.3, 0, random), first_sms(2));
  ASSERT_TRUE(seen) << seen.error().message;
  const auto found = match_fingerprints(card.topology, reference, *seen).value();
  EXPECT_FALSE(found[0].certain);
  EXPECT_EQ(std::min(found[0].tpc, found[0].other_tpc), three);
  EXPECT_EQ(std::max(found[0].tpc, found[0].other_tpc), five);
  // Whichever of the two is nearer: noise decides, so both orders come up.
  std::set<gpu::TpcIndex> nearest;
  for (int i = 0; i < 20; ++i) {
    const auto again = make_fingerprints(
        card.map, card.offsets, card.measure(card.page(random), test::sm_list({6}), 0.3, 0, random),
        first_sms(1));
    const SmIdentity sm = match_fingerprints(card.topology, reference, again.value())->at(0);
    nearest.insert(sm.tpc);
    EXPECT_EQ(sm.other_tpc, sm.tpc == three ? five : three);
  }
  EXPECT_EQ(nearest, (std::set<gpu::TpcIndex>{three, five}));
  EXPECT_TRUE(found[1].certain);
  EXPECT_EQ(found[1].tpc, gpu::TpcIndex(0));
}

TEST(FingerprintMatch, three_sms_on_one_tpc_are_in_doubt) {
  Random random(4);
  const PlantedCard card = small_card(random);
  const auto reference = reference_of(card, random);
  const auto seen = make_fingerprints(
      card.map, card.offsets,
      card.measure(card.page(random), test::sm_list({2, 3, 2, 8}), 0.3, 0, random), first_sms(4));
  const auto found = match_fingerprints(card.topology, reference, seen.value()).value();
  EXPECT_FALSE(found[0].certain || found[1].certain || found[2].certain);
  EXPECT_TRUE(found[3].certain);
}

TEST(FingerprintMatch, an_sm_that_is_none_of_the_cards_is_in_doubt) {
  Random random(5);
  PlantedCard card = small_card(random);
  const auto reference = reference_of(card, random);
  for (auto& row : card.latency) {
    for (double& value : row) value *= 1.05;  // as at another clock
  }
  const auto sms = test::sm_list({2, 8});
  const auto seen = make_fingerprints(card.map, card.offsets,
                                      card.measure(card.page(random), sms, 0.3, 0, random), sms);
  const auto found = match_fingerprints(card.topology, reference, seen.value()).value();
  for (const SmIdentity& sm : found) {
    EXPECT_FALSE(sm.certain);
  }
}

TEST(FingerprintMatch, an_sm_farther_than_noise_is_in_doubt_though_no_other_tpc_is_near) {
  Random random(9);
  PlantedCard card = small_card(random);
  for (const gpu::TpcIndex t : card.latency.keys()) {
    for (double& value : card.latency[t]) value += 20.0 * t.raw();
  }
  const auto reference = reference_of(card, random);
  const gpu::TpcIndex four(4);
  const auto sms = test::sm_list({8, 0});
  const auto certain_with = [&](double away) {
    PlantedCard moved = card;
    for (double& value : moved.latency[four]) value += away;
    const auto seen = make_fingerprints(
        moved.map, moved.offsets, moved.measure(moved.page(random), sms, 0.1, 0, random), sms);
    const auto found = match_fingerprints(card.topology, reference, seen.value()).value();
    EXPECT_EQ(found[0].tpc, four);
    EXPECT_TRUE(found[1].certain);
    return found[0].certain;
  };
  EXPECT_TRUE(certain_with(0.7));
  EXPECT_FALSE(certain_with(0.9)) << "0.8 cycles are the limit";
}

TEST(FingerprintMatch, a_reference_of_another_card_is_refused) {
  Random random(6);
  const PlantedCard card = small_card(random);
  const auto reference = reference_of(card, random);
  const auto found = match_fingerprints(gpu::regular_topology(1, 3, 2), reference, reference);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message,
            "the remembered fingerprints have 18 SMs and 10 slices, but this card has 6 SMs and 10 "
            "slices: run demarc topo --refresh");
  EXPECT_THAT(match_fingerprints(card.topology, Fingerprints{}, reference).error().message,
              HasSubstr("have 0 SMs and 0 slices, but this card has 18 SMs"));
  EXPECT_TRUE(match_fingerprints(card.topology, reference, Fingerprints{})->empty());
}

TEST(FingerprintMatch, a_reference_taken_with_another_hash_is_refused) {
  Random random(6);
  const PlantedCard card = small_card(random);
  const auto reference = reference_of(card, random);
  Fingerprints other = reference;
  other.modulus = 1;
  EXPECT_FALSE(match_fingerprints(card.topology, other, reference));
  other = reference;
  for (auto& row : other.latency) row.pop_back();
  EXPECT_FALSE(match_fingerprints(card.topology, other, reference));
  EXPECT_TRUE(match_fingerprints(card.topology, reference, reference));
}

TEST(FingerprintTable, latencies_that_do_not_follow_the_hash_are_refused) {
  Random random(7);
  const PlantedCard card = small_card(random);
  gpu::LatencyMatrix matrix;
  matrix.dimensions = 2;
  for (std::size_t i = 0; i < 2 * card.offsets.size(); ++i) {
    matrix.values.push_back(static_cast<float>(250 + 60 * random.uniform()));
  }
  const auto made = make_fingerprints(card.map, card.offsets, matrix, first_sms(2));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::check_failed);
}

TEST(FingerprintTable, a_card_without_a_known_hash_is_refused) {
  const auto map = known_address_map("Fake GPU");
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().kind, ErrorKind::missing_capability);
}

}  // namespace
}  // namespace demarc::cuda
