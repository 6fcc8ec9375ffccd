// Looks at partitions side by side, as an oracle of how sets of TPCs are split.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "demarc/partition/partition.hpp"

namespace demarc::test {

// Faults of partitions that are to run side by side, and facts worth knowing about them.
struct SplitReport {
  std::vector<std::string> faults;  // TPCs or colours in two parts, empty parts, unknown TPCs
  std::vector<gpu::GpcIndex> shared_gpcs;  // GPCs with TPCs of two or more parts
  gpu::TpcSet unused;                      // TPCs in no part
  [[nodiscard]] bool sound() const { return faults.empty(); }
};

inline void check_pair(const partition::Partition& a, const partition::Partition& b,
                       std::vector<std::string>& faults) {
  if (const gpu::TpcSet both = a.tpcs & b.tpcs; !both.empty()) {
    faults.push_back(
        fmt::format("partitions '{}' and '{}' share the TPCs {}", a.name, b.name, to_string(both)));
  }
  if (const color::ColorSet both = a.colors.common(b.colors); !both.empty()) {
    faults.push_back(fmt::format("partitions '{}' and '{}' share the memory colours {}", a.name,
                                 b.name, to_string(both)));
  }
}

inline SplitReport check_split(const gpu::Topology& topology,
                               const std::vector<partition::Partition>& parts) {
  SplitReport report;
  const gpu::TpcSet existing = all_tpcs(topology);
  gpu::TpcSet used;
  std::map<gpu::GpcIndex, std::set<std::size_t>> users_of_gpc;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const partition::Partition& part = parts[p];
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

}  // namespace demarc::test
