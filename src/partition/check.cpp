// Finds faults of partitions side by side, and the clusters that a set can host.
#include <algorithm>
#include <map>
#include <set>

#include "demarc/partition/partition.hpp"

namespace demarc::partition {
namespace {

void check_pair(const Partition& a, const Partition& b, std::vector<std::string>& faults) {
  if (const gpu::TpcSet both = a.tpcs & b.tpcs; !both.empty()) {
    faults.push_back(
        fmt::format("partitions '{}' and '{}' share the TPCs {}", a.name, b.name, to_string(both)));
  }
  if (const color::ColorSet both = a.colors.common(b.colors); !both.empty()) {
    faults.push_back(fmt::format("partitions '{}' and '{}' share the memory colours {}", a.name,
                                 b.name, to_string(both)));
  }
}

}  // namespace

SplitReport check_split(const gpu::Topology& topology, const std::vector<Partition>& parts) {
  SplitReport report;
  const gpu::TpcSet existing = all_tpcs(topology);
  gpu::TpcSet used;
  std::map<gpu::GpcIndex, std::set<std::size_t>> users_of_gpc;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const Partition& part = parts[p];
    if (part.tpcs.empty()) {
      report.faults.push_back(fmt::format("partition '{}' has no TPC", part.name));
    }
    if (const gpu::TpcSet unknown = part.tpcs - existing; !unknown.empty()) {
      report.faults.push_back(fmt::format("partition '{}' names the TPCs {}; the GPU has 0-{}",
                                          part.name, to_string(unknown), topology.tpc_count() - 1));
    }
    for (std::size_t q = p + 1; q < parts.size(); ++q) check_pair(part, parts[q], report.faults);
    for (const gpu::TpcIndex tpc : part.tpcs& existing) {
      users_of_gpc[topology.tpcs[tpc].gpc].insert(p);
    }
    used = used | part.tpcs;
  }
  for (const auto& [gpc, users] : users_of_gpc) {
    if (users.size() > 1) report.shared_gpcs.push_back(gpc);
  }
  report.unused = existing - used;
  return report;
}

std::uint32_t largest_cluster(const gpu::Topology& topology, const gpu::TpcSet& tpcs,
                              std::uint32_t blocks_per_sm) {
  PerIndex<gpu::GpcIndex, std::size_t> sms_of_gpc(topology.gpc_count());
  std::size_t most = 0;
  for (const gpu::TpcIndex tpc : all_tpcs(topology) & tpcs) {
    const auto& [gpc, sms, bit, side] = topology.tpcs[tpc];
    most = std::max(most, sms_of_gpc[gpc] += sms.size());
  }
  return static_cast<std::uint32_t>(most) * std::max(blocks_per_sm, 1U);
}

Result<void> check_cluster(const gpu::Topology& topology, const gpu::TpcSet& tpcs,
                           std::uint32_t cluster_blocks, std::uint32_t blocks_per_sm) {
  const std::uint32_t most = largest_cluster(topology, tpcs, blocks_per_sm);
  if (cluster_blocks <= most) return {};
  return invalid_input(
      "clusters of {} blocks cannot run on the TPCs {}: the largest GPC of the set holds {} blocks "
      "at a time and a cluster must fit into one GPC; such a launch would hang",
      cluster_blocks, to_string(tpcs), most);
}

}  // namespace demarc::partition
