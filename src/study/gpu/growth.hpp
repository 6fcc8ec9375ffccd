// Partitions that grow TPC by TPC.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/device/topology.hpp"

namespace demarc::study {

// How many TPCs a growing partition has, ascending, up to all.
[[nodiscard]] std::vector<std::uint32_t> growth_steps(std::uint32_t tpcs);

// TPCs in the order in which a growing partition takes them, the largest GPCs first: GPC by GPC
// (`packed`), or one of each GPC in turn.
[[nodiscard]] std::vector<gpu::TpcIndex> growth_order(const gpu::Topology& topology, bool packed);

}  // namespace demarc::study
