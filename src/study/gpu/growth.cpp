// Chooses the TPCs that a growing partition takes, and when it is measured.
#include "gpu/growth.hpp"

#include <algorithm>

namespace demarc::study {

std::vector<std::uint32_t> growth_steps(std::uint32_t tpcs) {
  std::vector<std::uint32_t> steps{1, 2, 4, 6, 8, 9, 10, 12, 16, 18, 20, 24, 32, 40, 48, 56};
  std::erase_if(steps, [tpcs](std::uint32_t n) { return n >= tpcs; });
  steps.push_back(tpcs);
  return steps;
}

std::vector<gpu::TpcIndex> growth_order(const gpu::Topology& topology, bool packed) {
  std::vector<std::vector<gpu::TpcIndex>> gpcs;
  for (const gpu::GpcIndex g : topology.gpcs()) gpcs.push_back(topology.tpcs_of_gpc(g));
  std::stable_sort(gpcs.begin(), gpcs.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<gpu::TpcIndex> order;
  if (packed) {
    for (const auto& gpc : gpcs) order.insert(order.end(), gpc.begin(), gpc.end());
    return order;
  }
  for (std::size_t i = 0; order.size() < topology.tpc_count(); ++i) {
    for (const auto& gpc : gpcs) {
      if (i < gpc.size()) order.push_back(gpc[i]);
    }
  }
  return order;
}

}  // namespace demarc::study
