// Concludes which TPCs form a GPC, and on which L2 side each lies, from what was measured.
#include "topology_probe.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace demarc::cuda {
namespace {

using gpu::TpcIndex;

// Sets of TPCs that clusters have shown to share a GPC.
class TpcUnion {
 public:
  explicit TpcUnion(std::uint32_t count) {
    for (const TpcIndex t : indices<TpcIndex>(count)) parent_.push_back(t);
  }
  TpcIndex find(TpcIndex t) {
    while (parent_[t] != t) t = parent_[t] = parent_[parent_[t]];
    return t;
  }
  void join(TpcIndex a, TpcIndex b) { parent_[find(b)] = find(a); }

 private:
  PerIndex<TpcIndex, TpcIndex> parent_;
};

struct Groups {
  PerIndex<TpcIndex, TpcIndex> root;
  PerIndex<TpcIndex, std::uint32_t> size;  // TPCs in the set of each TPC
};

Result<Groups> group_by_cluster(const TopologyEvidence& evidence, std::uint32_t tpcs) {
  TpcUnion sets(tpcs);
  const auto tpc_of = [&](gpu::SmIndex sm) { return TpcIndex(sm.raw() / evidence.sms_per_tpc); };
  for (const auto& cluster : evidence.clusters) {
    for (const gpu::SmIndex sm : cluster) {
      if (sm.raw() >= evidence.sms) {
        return check_failed("a cluster ran on SM {}, but the GPU has {} SMs", sm, evidence.sms);
      }
      sets.join(tpc_of(cluster.front()), tpc_of(sm));
    }
  }
  Groups groups;
  for (const TpcIndex t : indices<TpcIndex>(tpcs)) groups.root.push_back(sets.find(t));
  for (const TpcIndex root : groups.root) {
    groups.size.push_back(
        static_cast<std::uint32_t>(std::count(groups.root.begin(), groups.root.end(), root)));
  }
  return groups;
}

// The pair of TPCs that speaks against `stride` bits per GPC: one cluster set in two GPCs, or two
// sets in one.
struct Contradiction {
  TpcIndex a, b;
  bool same_cluster;
};

std::optional<Contradiction> contradiction(const PerIndex<TpcIndex, std::uint32_t>& bits,
                                           const Groups& groups, std::uint32_t stride) {
  for (const TpcIndex a : bits.keys()) {
    for (TpcIndex b = a; b < bits.next_key(); ++b) {
      const bool same_cluster = groups.root[a] == groups.root[b];
      const bool same_gpc = bits[a] / stride == bits[b] / stride;
      if (same_cluster && !same_gpc) return Contradiction{a, b, true};
      if (!same_cluster && same_gpc && groups.size[a] > 1 && groups.size[b] > 1) {
        return Contradiction{a, b, false};
      }
    }
  }
  return std::nullopt;
}

Result<std::uint32_t> find_stride(const TopologyEvidence& evidence, const Groups& groups) {
  if (evidence.bits_per_gpc != 0) {
    if (!contradiction(evidence.bits, groups, evidence.bits_per_gpc)) return evidence.bits_per_gpc;
  } else {
    for (std::uint32_t stride = 1; stride <= 32; ++stride) {
      if (!contradiction(evidence.bits, groups, stride)) return stride;
    }
  }
  const std::uint32_t shown = evidence.bits_per_gpc != 0 ? evidence.bits_per_gpc : 8;
  const Contradiction found = *contradiction(evidence.bits, groups, shown);
  return check_failed(
      "the two ways to find the GPCs disagree: TPCs {} and {} {} run in one cluster, but their "
      "descriptor bits {} and {} lie in {} of {} bits",
      found.a, found.b, found.same_cluster ? "did" : "never", evidence.bits[found.a],
      evidence.bits[found.b], found.same_cluster ? "different groups" : "one group", shown);
}

// For the GPC of a TPC; equal keys are one GPC, keys ascend with GPC numbers.
using GpcKey = std::pair<std::uint32_t, std::uint32_t>;

PerIndex<TpcIndex, GpcKey> keys_by_descriptor(const TopologyEvidence& evidence,
                                              const Groups& groups, std::uint32_t stride) {
  std::map<std::uint32_t, bool> has_cluster;
  for (const TpcIndex t : evidence.bits.keys()) {
    has_cluster[evidence.bits[t] / stride] |= groups.size[t] > 1;
  }
  PerIndex<TpcIndex, GpcKey> keys;
  for (const TpcIndex t : evidence.bits.keys()) {
    const std::uint32_t group = evidence.bits[t] / stride;
    const bool alone = !evidence.clusters.empty() && !has_cluster[group];
    keys.emplace_back(group, alone ? evidence.bits[t] : 0);
  }
  return keys;
}

void apply_sides(const TopologyEvidence& evidence, TopologyFinding& finding) {
  if (evidence.latency.empty()) return;
  const bool complete = std::none_of(evidence.latency.begin(), evidence.latency.end(),
                                     [](const std::vector<double>& row) { return row.empty(); });
  const auto sides = complete ? find_sides(evidence.latency) : std::nullopt;
  if (!sides) {
    finding.notes.emplace_back("L2 sides: the latencies do not fall into two groups");
    return;
  }
  for (gpu::Tpc& tpc : finding.topology.tpcs) {
    const std::uint32_t side = sides->side[tpc.sms.front()];
    const bool whole = std::all_of(tpc.sms.begin(), tpc.sms.end(),
                                   [&](gpu::SmIndex sm) { return sides->side[sm] == side; });
    if (whole) tpc.side = side;
  }
  if (!finding.topology.sides_known()) {
    finding.notes.emplace_back(
        "L2 sides: the SMs of some TPCs disagree; the sides of these TPCs are left open");
  }
}

}  // namespace

Result<TopologyFinding> conclude_topology(const TopologyEvidence& evidence) {
  if (evidence.sms == 0 || evidence.sms_per_tpc == 0) return invalid_input("a GPU without SMs");
  const std::uint32_t tpcs = ceil_div(evidence.sms, evidence.sms_per_tpc);
  if (!evidence.bits.empty() && evidence.bits.size() != tpcs) {
    return invalid_input("{} hardware bits were given for {} TPCs", evidence.bits.size(), tpcs);
  }
  DEMARC_TRY(const Groups groups, group_by_cluster(evidence, tpcs));
  TopologyFinding finding;
  finding.by_cluster = !evidence.clusters.empty();
  finding.by_descriptor = !evidence.bits.empty();
  PerIndex<TpcIndex, GpcKey> keys(tpcs);
  if (finding.by_descriptor && (finding.by_cluster || evidence.bits_per_gpc != 0)) {
    DEMARC_TRY(const std::uint32_t stride, find_stride(evidence, groups));
    keys = keys_by_descriptor(evidence, groups, stride);
  } else if (finding.by_cluster) {
    // Sets in the order of their first TPC.
    for (const TpcIndex t : keys.keys()) {
      const auto first = std::find(groups.root.begin(), groups.root.end(), groups.root[t]);
      keys[t].first = static_cast<std::uint32_t>(first - groups.root.begin());
    }
  } else {
    finding.notes.emplace_back(
        "GPCs: neither descriptors nor clusters show them on this GPU; all TPCs are listed as one "
        "GPC");
  }
  std::vector<GpcKey> distinct(keys.begin(), keys.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  gpu::SmIndex sm;
  for (const TpcIndex t : keys.keys()) {
    gpu::Tpc tpc;
    tpc.gpc = gpu::GpcIndex(std::lower_bound(distinct.begin(), distinct.end(), keys[t]) -
                            distinct.begin());
    for (; tpc.sms.size() < evidence.sms_per_tpc && sm.raw() < evidence.sms; ++sm) {
      tpc.sms.push_back(sm);
    }
    if (finding.by_descriptor) tpc.bit = evidence.bits[t];
    finding.topology.tpcs.push_back(std::move(tpc));
    const auto sharing = std::count(keys.begin(), keys.end(), keys[t]);
    if (!(finding.by_descriptor && finding.by_cluster) || (groups.size[t] == 1 && sharing > 1)) {
      finding.unconfirmed.push_back(t);
    }
  }
  apply_sides(evidence, finding);
  DEMARC_CHECK(finding.topology.check());
  return finding;
}

}  // namespace demarc::cuda
