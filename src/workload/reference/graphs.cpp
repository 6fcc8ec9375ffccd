// Computes what breadth-first search must give, level by level.
#include <algorithm>
#include <vector>

#include "references.hpp"

namespace demarc::workload {

// As many levels as the launch expands; nodes reached in the last one stand in the frontier.
void bfs_reference(const ReferenceCall& call) {
  const auto nodes = call.words("nodes");
  const auto edges = call.words("edges");
  const auto frontier = call.buffer<std::uint8_t>("frontier");
  const auto visited = call.buffer<std::uint8_t>("visited");
  const auto cost = call.buffer<std::int32_t>("cost");
  for (std::size_t level = 0; level < call.parameter("levels"); ++level) {
    std::vector<std::uint32_t> reached;
    for (std::size_t node = 0; node < frontier.size(); ++node) {
      if (frontier[node] == 0) continue;
      frontier[node] = 0;
      for (const std::uint32_t next : edges.subspan(nodes[2 * node], nodes[2 * node + 1])) {
        if (visited[next] != 0) continue;
        cost[next] = cost[node] + 1;
        reached.push_back(next);
      }
    }
    for (const std::uint32_t node : reached) frontier[node] = visited[node] = 1;
  }
}

}  // namespace demarc::workload
