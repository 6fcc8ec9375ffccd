// What every back end must do, on the stand-in and on real cards: each function is one sentence of
// the contract and fails the running test when it does not hold.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "demarc/base/random.hpp"
#include "demarc/card/backend.hpp"
#include "demarc/card/masks.hpp"
#include "demarc/driver/sync_domain.hpp"

namespace demarc::test {

using cuda::Backend;
using cuda::CardPointer;
using cuda::LaunchShape;
using gpu::TpcSet;

inline partition::Partition part_of(const TpcSet& tpcs) {
  return {"part", tpcs, {}, 0};
}

inline TpcSet random_set(Random& random, std::uint32_t tpcs) {
  TpcSet set;
  while (set.empty()) {
    set = TpcSet::from_words(random() & random(), random() & random()) & TpcSet::first(tpcs);
  }
  return set;
}

// Blocks of both halves stay in their halves, also while the other half's lane exists.
inline void two_lanes_stay_apart(const CardPointer& card, Backend& backend) {
  const auto parts =
      partition::split(card->topology(), 2, partition::SplitStrategy::packed).value();
  const auto first = backend.open(parts[0]);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = backend.open(parts[1]);
  ASSERT_TRUE(second) << second.error().message;
  for (const auto* lane : {&*first, &*second}) {
    const auto proof = cuda::prove(*card, **lane, 8 * card->gpu()->sm_count());
    ASSERT_TRUE(proof) << proof.error().message;
    EXPECT_EQ(proof->blocks, 8ULL * card->gpu()->sm_count());
    if (backend.traits().confines) {
      EXPECT_TRUE(proof->holds()) << proof->outside << " blocks outside";
      ASSERT_TRUE((*lane)->proof()) << "what the probe showed when it was opened";
      EXPECT_LE((*lane)->proof()->sms.size(), proof->sms_allowed);
      // Persistent blocks draw their work; some may come too late for any.
      EXPECT_GE(4 * proof->sms.size(), 3 * proof->sms_allowed) << "SMs of the lane stayed idle";
      if (!backend.traits().rewrites) {
        EXPECT_EQ(proof->sms.size(), proof->sms_allowed);
      }
    }
  }
}

// Any set of TPCs will do, not only runs.
inline void odd_sets_hold(const CardPointer& card, Backend& backend, int rounds,
                          std::uint64_t seed) {
  if (!backend.traits().exact) return;
  Random random(seed);
  for (int round = 0; round < rounds; ++round) {
    const TpcSet set = random_set(random, card->topology().tpc_count());
    const auto lane = backend.open(part_of(set));
    ASSERT_TRUE(lane) << lane.error().message;
    EXPECT_EQ((*lane)->tpcs(), set);
    const auto proof = cuda::prove(*card, **lane, 4 * card->gpu()->sm_count());
    ASSERT_TRUE(proof) << proof.error().message;
    EXPECT_TRUE(proof->holds()) << to_string(set);
  }
}

// A stream that belongs to no lane is as free as before.
inline void other_streams_stay_free(const CardPointer& card, Backend& backend) {
  const auto lane = backend.open(part_of({0}));
  ASSERT_TRUE(lane) << lane.error().message;
  const auto placement = cuda::probe_placement(
      card->stream(), card->kernels(), LaunchShape::line(8 * card->gpu()->sm_count(), 64), 5000);
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_EQ(placement->used_sms().size(), card->gpu()->sm_count());
}

// A lane that goes by an exception leaves nothing behind.
inline void an_exception_releases_the_lane(const CardPointer& card, Backend& backend) {
  try {
    const auto lane = backend.open(part_of({0}));
    ASSERT_TRUE(lane) << lane.error().message;
    throw std::runtime_error("in the middle");
  } catch (const std::runtime_error&) {
  }
  const auto whole = backend.open(part_of(gpu::all_tpcs(card->topology())));
  ASSERT_TRUE(whole) << whole.error().message;
  const auto placement = (*whole)->probe(8 * card->gpu()->sm_count(), 5000);
  ASSERT_TRUE(placement) << placement.error().message;
  EXPECT_GE(4 * placement->used_sms().size(), 3 * card->gpu()->sm_count());
}

inline void an_empty_partition_is_refused(const CardPointer&, Backend& backend) {
  const auto lane = backend.open(part_of({}));
  ASSERT_FALSE(lane);
  EXPECT_EQ(lane.error().kind, ErrorKind::invalid_input);
  EXPECT_THAT(lane.error().message, testing::HasSubstr("has no TPC"));
}

// Clusters that no GPC of the lane can host are refused before they could hang.
inline void unsafe_clusters_are_refused(const CardPointer& card, Backend& backend) {
  if (!backend.traits().confines) return;
  const auto lane = backend.open(part_of({0}));
  ASSERT_TRUE(lane) << lane.error().message;
  const auto sms = static_cast<std::uint32_t>(card->topology().tpcs.front().sms.size());
  EXPECT_TRUE((*lane)->check_cluster(sms));
  const auto refused = (*lane)->check_cluster(sms + 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("would hang"));
}

inline void lanes_change_or_say_that_they_cannot(const CardPointer& card, Backend& backend) {
  const auto lane = backend.open(part_of({0}));
  ASSERT_TRUE(lane) << lane.error().message;
  const auto changed = (*lane)->change({1});
  EXPECT_EQ(changed.has_value(), backend.traits().changes);
  if (!changed) {
    EXPECT_EQ(changed.error().kind, ErrorKind::missing_capability);
    return;
  }
  EXPECT_FALSE((*lane)->change({})) << "a mask without a TPC was accepted";
  const auto proof = cuda::prove(*card, **lane, 4 * card->gpu()->sm_count());
  ASSERT_TRUE(proof) << proof.error().message;
  EXPECT_TRUE(proof->holds());
  EXPECT_EQ((*lane)->tpcs(), TpcSet{1});
}

// A graph captured from the lane's stream stays inside at its first and at later launches.
inline void graphs_stay_inside(const CardPointer& card, Backend& backend) {
  if (!backend.traits().foreign_code || !backend.traits().confines) return;
  const auto lane = backend.open(part_of({1}));
  ASSERT_TRUE(lane) << lane.error().message;
  const auto& gpu = card->gpu();
  const auto& api = gpu->api();
  const auto counts = cuda::DeviceBuffer::allocate(gpu, 4ULL * gpu->sm_count()).value();
  ASSERT_TRUE(counts.fill(0));
  cuda::CuGraph graph = nullptr;
  cuda::CuGraphExec executable = nullptr;
  const auto& stream = (*lane)->stream();
  ASSERT_EQ(api.cuStreamBeginCapture_v2(stream.handle(), cuda::cu_capture_thread_local), 0);
  for (int node = 0; node < 3; ++node) {
    ASSERT_TRUE(cuda::launch(stream, card->kernels().where(), LaunchShape::line(64, 64),
                             counts.address(), cuda::DevicePointer{0}, std::uint64_t{1000}));
  }
  ASSERT_EQ(api.cuStreamEndCapture(stream.handle(), &graph), 0);
  ASSERT_EQ(api.cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(api.cuGraphLaunch(executable, stream.handle()), 0);
    ASSERT_TRUE(stream.wait());
  }
  cuda::Placement placement;
  placement.blocks = counts.read<std::uint32_t>(gpu->sm_count()).value();
  EXPECT_EQ(placement.total(), 3U * 3U * 64U);
  EXPECT_EQ(placement.outside(gpu::sms_of(card->topology(), {1})), 0U);
  api.cuGraphExecDestroy(executable);
  api.cuGraphDestroy(graph);
}

// `count` launches, each under a random mask of a random level: not one block outside.
inline void random_masks_never_leak(const CardPointer& card, std::uint64_t count,
                                    std::uint64_t seed) {
  Random random(seed);
  const auto& gpu = card->gpu();
  const std::uint32_t sms = gpu->sm_count();
  const auto stream = cuda::Stream::create(gpu).value();
  const auto counts = cuda::DeviceBuffer::allocate(gpu, 4ULL * sms).value();
  const auto masks = card->stream_masks().value();
  auto* hook = card->hook().value();
  PerIndex<gpu::SmIndex, std::uint32_t> seen(sms);
  std::uint64_t blocks = 0;
  std::uint64_t outside = 0;
  for (std::uint64_t launch = 0; launch < count; ++launch) {
    const TpcSet set = random_set(random, card->topology().tpc_count());
    const std::uint64_t level = random.below(3);
    if (level == 0) hook->set_process_mask(card->hardware_mask(set).value());
    if (level == 1) {
      ASSERT_TRUE(masks->set(stream.handle(), set));
    }
    ASSERT_EQ(gpu->api().cuMemsetD8Async(counts.address(), 0, 4ULL * sms, stream.handle()), 0);
    if (level == 2) hook->set_next_mask(card->hardware_mask(set).value());
    ASSERT_TRUE(cuda::launch(stream, card->kernels().where(), LaunchShape::line(sms, 32),
                             counts.address(), cuda::DevicePointer{0}, std::uint64_t{0}));
    ASSERT_EQ(
        gpu->api().cuMemcpyDtoHAsync_v2(seen.data(), counts.address(), 4ULL * sms, stream.handle()),
        0);
    ASSERT_TRUE(stream.wait());
    if (level == 0) hook->set_process_mask(std::nullopt);
    if (level == 1) {
      ASSERT_TRUE(masks->clear(stream.handle()));
    }
    for (const gpu::TpcIndex t : card->topology().tpcs.keys()) {
      for (const gpu::SmIndex sm : card->topology().tpcs[t].sms) {
        blocks += seen[sm];
        if (!set.contains(t)) outside += seen[sm];
      }
    }
  }
  EXPECT_EQ(blocks, count * sms);
  EXPECT_EQ(outside, 0U) << "of " << blocks << " blocks";
}

// Lanes have the domains of their partitions where the card has several, and refuse one it has not.
inline void lanes_have_domains_of_their_own(const CardPointer& card, Backend& backend) {
  const std::uint32_t count = cuda::sync_domain_count(*card->gpu());
  auto parts = partition::split(card->topology(), 2, partition::SplitStrategy::packed).value();
  for (std::uint32_t p = 0; p < 2; ++p) {
    const auto lane = backend.open(parts[p]);
    ASSERT_TRUE(lane) << lane.error().message;
    if (count == 1) {
      EXPECT_FALSE((*lane)->sync_domain());
      continue;
    }
    EXPECT_EQ((*lane)->sync_domain(), p);
    cuda::CuLaunchAttributeValue kept{};
    ASSERT_EQ(card->gpu()->api().cuStreamGetAttribute(
                  (*lane)->stream().handle(), cuda::CuLaunchAttribute::sync_domain_map, &kept),
              0);
    EXPECT_EQ(kept.domains[0], p);
    EXPECT_EQ(kept.domains[1], p);
  }
  parts[0].sync_domain.reset();
  EXPECT_FALSE(backend.open(parts[0]).value()->sync_domain());
  if (count == 1) return;
  parts[0].sync_domain = count;
  EXPECT_THAT(backend.open(parts[0]).error().message,
              testing::HasSubstr("there is no memory synchronisation domain"));
}

// The whole contract but for the last sentence.
inline void conforms(const CardPointer& card, Backend& backend, int rounds) {
  two_lanes_stay_apart(card, backend);
  odd_sets_hold(card, backend, rounds, 7);
  an_exception_releases_the_lane(card, backend);
  an_empty_partition_is_refused(card, backend);
  unsafe_clusters_are_refused(card, backend);
  lanes_change_or_say_that_they_cannot(card, backend);
  graphs_stay_inside(card, backend);
  lanes_have_domains_of_their_own(card, backend);
  if (!backend.traits().across_processes) other_streams_stay_free(card, backend);
}

}  // namespace demarc::test
