// Topology from evidence. The pure half of it: what bits, cluster placements and latencies say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/card/probe_kernels.hpp"
#include "demarc/device/topology.hpp"

namespace demarc::cuda {

// What was measured. Anything but the SM count may be missing.
struct TopologyEvidence {
  std::uint32_t sms = 0;
  std::uint32_t sms_per_tpc = 2;
  // First way: each TPC's hardware bit; empty when descriptors cannot be seen.
  PerIndex<gpu::TpcIndex, std::uint32_t> bits;
  // Second way: SMs whose blocks belonged to one cluster, so that they share a GPC.
  std::vector<std::vector<gpu::SmIndex>> clusters;
  SmLatencies latency;
  // Hardware bits per GPC, where the architecture is known to have a fixed number; 0: find it.
  std::uint32_t bits_per_gpc = 0;
};

struct TopologyFinding {
  gpu::Topology topology;
  bool by_descriptor = false;
  bool by_cluster = false;
  // TPCs whose GPC only one of the two ways could tell.
  std::vector<gpu::TpcIndex> unconfirmed;
  std::vector<std::string> notes;  // sentences for a person
};

// check_failed when the two ways contradict each other; the message names the SMs. A TPC is a GPC
// of its own if it never shared a cluster and no TPC of its descriptor group did: on Hopper the
// hardware lists such TPCs apart.
[[nodiscard]] Result<TopologyFinding> conclude_topology(const TopologyEvidence& evidence);

struct Sides {
  PerIndex<gpu::SmIndex, std::uint32_t> side;  // 0 or 1; the first SM has 0
  double separation = 0;  // distance of the two groups' middles over their spread
};
// The two sides of the L2. SMs of one side see the same lines near. So latencies that are centred
// by line and by SM fall into two groups along one axis. Nothing is returned when the separation of
// the groups is below 4.
[[nodiscard]] std::optional<Sides> find_sides(const SmLatencies& latency);

}  // namespace demarc::cuda
