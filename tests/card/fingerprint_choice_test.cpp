// What decides that an SM is told for certain, with latencies that are known to the last digit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "demarc/base/random.hpp"
#include "demarc/card/fingerprints.hpp"
#include "demarc/device/slice_model.hpp"
#include "sms.hpp"

namespace demarc::cuda {
namespace {

// Four slices that no exchange of their names leaves as they are.
std::vector<float> row_about(float cycles) {
  return {cycles, cycles + 30, cycles + 70, cycles + 150};
}

// Two TPCs of an SM each, so many cycles apart; the SM that is looked for has so many more than
// the first.
SmIdentity identity_of_sm(float apart, float away, double noise = 0) {
  Fingerprints reference;
  reference.modulus = 1;
  reference.sms = test::sm_list({0, 1});
  reference.latency = {row_about(250), row_about(250 + apart)};
  Fingerprints observed = reference;
  observed.sms = test::sm_list({7});
  observed.latency = {row_about(250 + away)};
  observed.noise = noise;
  const auto found = match_fingerprints(gpu::regular_topology(1, 2, 1), reference, observed);
  EXPECT_TRUE(found) << found.error().message;
  return found->at(0);
}

TEST(FingerprintChoice, the_next_tpc_is_two_standard_errors_away_at_least) {
  const SmIdentity sure = identity_of_sm(3, 0, 1.5);
  EXPECT_TRUE(sure.certain);
  EXPECT_EQ(sure.sm, gpu::SmIndex(7));
  EXPECT_EQ(sure.tpc, gpu::TpcIndex(0));
  EXPECT_EQ(sure.distance, 0);
  EXPECT_EQ(sure.other_tpc, gpu::TpcIndex(1));
  EXPECT_EQ(sure.other_distance, 3);
  EXPECT_FALSE(identity_of_sm(3, 0, 1.51).certain);
}

TEST(FingerprintChoice, the_next_tpc_is_twice_as_far_at_least) {
  EXPECT_TRUE(identity_of_sm(1.5, 0.5).certain);
  EXPECT_FALSE(identity_of_sm(1.375, 0.5).certain);
}

TEST(FingerprintChoice, candidates_are_the_tpcs_that_it_may_be) {
  using gpu::TpcSet;
  EXPECT_EQ(identity_of_sm(1.5, 0.5).candidates, TpcSet{0});
  EXPECT_EQ(identity_of_sm(1.375, 0.5).candidates, (TpcSet{0, 1}));
  EXPECT_EQ(identity_of_sm(3, 0, 1.5).candidates, TpcSet{0});
  EXPECT_EQ(identity_of_sm(3, 0, 1.51).candidates, (TpcSet{0, 1})) << "by the noise";
  EXPECT_EQ(identity_of_sm(10, -0.75).candidates, TpcSet{0});
  EXPECT_TRUE(identity_of_sm(10, -0.875).candidates.empty()) << "far from all";
}

TEST(FingerprintChoice, of_a_tpc_with_more_sms_than_it_has_none_is_known) {
  Fingerprints reference;
  reference.modulus = 1;
  reference.sms = test::sm_list({0, 1});
  reference.latency = {row_about(250), row_about(260)};
  Fingerprints observed = reference;
  observed.latency[1] = row_about(250);
  const auto found =
      match_fingerprints(gpu::regular_topology(1, 2, 1), reference, observed).value();
  for (const SmIdentity& sm : found) EXPECT_TRUE(sm.candidates.empty());
}

// The parity of a slice's name makes no difference: which half is which nobody can tell.
TEST(FingerprintChoice, where_two_alignments_fit_nothing_is_certain) {
  Random random(11);
  for (int draw = 0; draw < 20; ++draw) {
    const auto nearly = [&random](float cycles) {
      return cycles + static_cast<float>(0.02 * random.uniform());
    };
    Fingerprints reference;
    reference.modulus = 2;
    reference.sms = test::sm_list({0, 1});
    for (const float tpc : {250.F, 260.F}) {
      reference.latency.push_back({nearly(tpc), nearly(tpc + 40), nearly(tpc), nearly(tpc + 40)});
    }
    Fingerprints observed = reference;
    for (auto& row : observed.latency) {
      for (float& cycles : row) cycles = nearly(cycles);
    }
    const auto found =
        match_fingerprints(gpu::regular_topology(1, 2, 1), reference, observed).value();
    EXPECT_FALSE(found[0].certain || found[1].certain) << draw;
  }
}

// To a TPC that all slices are as far from, every alignment fits; the others decide.
TEST(FingerprintChoice, every_sm_helps_to_align) {
  Fingerprints reference;
  reference.modulus = 1;
  reference.sms = test::sm_list({0, 1});
  reference.latency = {{250, 250, 250, 250}, row_about(300)};
  Fingerprints observed = reference;
  std::swap(observed.latency[1][0], observed.latency[1][1]);  // the page flips the lowest parity
  std::swap(observed.latency[1][2], observed.latency[1][3]);
  const auto found =
      match_fingerprints(gpu::regular_topology(1, 2, 1), reference, observed).value();
  EXPECT_TRUE(found[0].certain);
  EXPECT_TRUE(found[1].certain);
  EXPECT_EQ(found[1].tpc, gpu::TpcIndex(1));
  EXPECT_EQ(found[1].distance, 0);
}

TEST(FingerprintChoice, the_first_sm_helps_to_align_as_well) {
  Fingerprints reference;
  reference.modulus = 1;
  reference.sms = test::sm_list({0, 1});
  reference.latency = {row_about(300), {250, 250, 250, 250}};
  const auto found =
      match_fingerprints(gpu::regular_topology(1, 2, 1), reference, reference).value();
  EXPECT_TRUE(found[0].certain);
  EXPECT_TRUE(found[1].certain);
}

TEST(FingerprintChoice, a_cycle_in_one_slice_is_enough_to_align) {
  Fingerprints reference;
  reference.modulus = 1;
  reference.sms = test::sm_list({0, 1});
  reference.latency = {{250, 250, 250, 251}, {260, 260, 260, 261}};
  const auto found =
      match_fingerprints(gpu::regular_topology(1, 2, 1), reference, reference).value();
  EXPECT_TRUE(found[0].certain);
  EXPECT_TRUE(found[1].certain);
}

gpu::AddressMap hash_without_a_stack() {
  gpu::AddressMap map = known_address_map("NVIDIA H100 80GB HBM3").value();
  map.stack.reset();
  map.module.rows.resize(2);
  return map;
}

// Slices of 200, 220, 240 and 260 cycles, whose readings lie around that.
gpu::LatencyMatrix readings_of(const gpu::AddressMap& map, std::span<const std::uint64_t> offsets,
                               std::uint32_t sms) {
  gpu::LatencyMatrix matrix;
  matrix.dimensions = sms;
  std::vector<std::uint32_t> seen(4, 0);
  for (const std::uint64_t offset : offsets) {
    const std::uint32_t slice = map.module(offset);
    const float reading = static_cast<float>(seen[slice]++) / 64;
    for (std::uint32_t sm = 0; sm < sms; ++sm) {
      matrix.values.push_back(200 + 20 * static_cast<float>(slice) + reading);
    }
  }
  return matrix;
}

TEST(FingerprintChoice, a_fingerprint_has_the_median_of_every_slice) {
  const gpu::AddressMap map = hash_without_a_stack();
  const auto offsets = gpu::sample_offsets(map.page_bytes, map.interleave_bytes, 256);
  const auto made =
      make_fingerprints(map, offsets, readings_of(map, offsets, 2), test::sm_list({4, 9}));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->modulus, 1U);
  EXPECT_EQ(made->sms, test::sm_list({4, 9}));
  ASSERT_EQ(made->latency.size(), 2U);
  std::vector<std::uint32_t> readings(4, 0);
  for (const std::uint64_t offset : offsets) ++readings[map.module(offset)];
  for (const auto& row : made->latency) {
    ASSERT_EQ(row.size(), 4U);
    for (std::uint32_t slice = 0; slice < 4; ++slice) {
      const auto middle = static_cast<float>(readings[slice] / 2);
      EXPECT_EQ(row[slice], 200 + 20 * static_cast<float>(slice) + middle / 64) << slice;
    }
  }
}

// Readings of a slice are a cycle off its mean, each.
TEST(FingerprintChoice, the_noise_is_that_of_a_median_of_the_readings_of_a_slice) {
  const gpu::AddressMap map = hash_without_a_stack();
  gpu::LatencyMatrix matrix;
  matrix.dimensions = 1;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint32_t> seen(4, 0);
  for (std::uint64_t offset = 0; offset < map.page_bytes; offset += map.interleave_bytes) {
    const std::uint32_t slice = map.module(offset);
    if (seen[slice] == 64) continue;
    offsets.push_back(offset);
    matrix.values.push_back((seen[slice]++ % 2 == 0 ? 199.F : 201.F) +
                            20 * static_cast<float>(slice));
  }
  ASSERT_EQ(offsets.size(), 4U * 64U);
  EXPECT_DOUBLE_EQ(make_fingerprints(map, offsets, matrix, test::sm_list({0}))->noise, 1.25 / 8);
}

// One SM that follows the hash does not vouch for the rest.
TEST(FingerprintChoice, sms_are_judged_together_however_many_there_are) {
  const gpu::AddressMap map = hash_without_a_stack();
  const auto offsets = gpu::sample_offsets(map.page_bytes, map.interleave_bytes, 256);
  Random random(12);
  for (const std::uint32_t sms : {2U, 7U, 16U, 24U}) {
    gpu::LatencyMatrix matrix = readings_of(map, offsets, sms);
    const auto all = indices<gpu::SmIndex>(sms);
    const std::vector<gpu::SmIndex> numbers(all.begin(), all.end());
    EXPECT_TRUE(make_fingerprints(map, offsets, matrix, numbers)) << sms;
    for (std::size_t i = 0; i < matrix.values.size(); ++i) {
      if (i % sms != 0) matrix.values[i] = static_cast<float>(200 + 60 * random.uniform());
    }
    EXPECT_FALSE(make_fingerprints(map, offsets, matrix, numbers)) << sms;
  }
}

TEST(FingerprintChoice, chunks_that_leave_a_slice_out_are_too_few) {
  const gpu::AddressMap map = hash_without_a_stack();
  auto offsets = gpu::sample_offsets(map.page_bytes, map.interleave_bytes, 256);
  offsets.erase(std::remove_if(offsets.begin(), offsets.end(),
                               [&map](std::uint64_t offset) { return map.module(offset) == 3; }),
                offsets.end());
  const auto made =
      make_fingerprints(map, offsets, readings_of(map, offsets, 1), test::sm_list({0}));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message,
            fmt::format("fingerprints: {} chunks are too few", offsets.size()));
}

TEST(FingerprintChoice, a_card_whose_pages_or_hash_are_not_known_has_none) {
  for (const char* name : {"Tesla V100-SXM2-16GB", "A100", "Titan V"}) {
    EXPECT_FALSE(known_address_map(name)) << name;
  }
}

}  // namespace
}  // namespace demarc::cuda
