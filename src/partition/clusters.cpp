// Says which clusters of thread blocks a set of TPCs can host.
#include <algorithm>

#include "demarc/partition/partition.hpp"

namespace demarc::partition {

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
