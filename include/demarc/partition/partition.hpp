// A partition: which TPCs its work may run on, which memory colours its data may lie in, which
// memory synchronisation domain its launches are of, how much memory it may take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/gpu/topology.hpp"
#include "demarc/partition/tpc_set.hpp"

namespace demarc::partition {

struct Partition {
  std::string name;
  TpcSet tpcs;
  std::uint64_t colors = 0;    // bit c: data may lie in colour c; 0: memory is not divided
  std::uint64_t byte_cap = 0;  // the most device memory, in bytes; 0: no cap
  // Memory synchronisation domain of its launches, where the card has several; none: that of all.
  std::optional<std::uint32_t> sync_domain = {};

  friend bool operator==(const Partition&, const Partition&) = default;
};

// How TPCs are dealt out to the parts of a split.
enum class SplitStrategy {
  packed,        // neighbours in GPC order: a part touches as few GPCs as possible
  distributed,   // each GPC is dealt out to all parts in turn
  gpc_aligned,   // no GPC is shared by two parts; sizes are as equal as whole GPCs allow
  side_aware,    // ordered by L2 side, then GPC: as few parts as possible lie on both sides
  side_aligned,  // no part lies on both L2 sides and none shares a GPC; the first half of the parts
                 // lies on side 0
};

[[nodiscard]] std::string_view to_string(SplitStrategy strategy);
[[nodiscard]] Result<SplitStrategy> parse_split_strategy(std::string_view text);

// `parts` disjoint partitions that cover the GPU, named "1/n" ... "n/n", in [1, number of TPCs], of
// the memory synchronisation domains 0 ... n-1.
// Sizes differ by at most one TPC, except with gpc_aligned and side_aligned. Errors: too many parts
// (more than GPCs with gpc_aligned, than twice those of a side with side_aligned), an odd number of
// them with side_aligned, or a topology whose sides are not known where they matter. When colors >
// 0 the colours 0 .. colors-1 are shared out too, in equal runs; colors must be a multiple of
// parts.
[[nodiscard]] Result<std::vector<Partition>> split(const gpu::Topology& topology,
                                                   std::uint32_t parts, SplitStrategy strategy,
                                                   std::uint32_t colors = 0);

// The smallest set with at least `sms` SMs, taken packed from the front: for --sms N. Errors: 0 or
// more than the GPU has.
[[nodiscard]] Result<TpcSet> take_sms(const gpu::Topology& topology, std::uint32_t sms);
// At least `percent` of the SMs (0 < percent <= 100): for --share P%.
[[nodiscard]] Result<TpcSet> take_share(const gpu::Topology& topology, double percent);

// What is wrong, or merely worth knowing, about partitions that are to run side by side.
struct SplitReport {
  std::vector<std::string> faults;  // TPCs or colours in two parts, empty parts, unknown TPCs
  std::vector<std::uint32_t> shared_gpcs;  // GPCs with TPCs of two or more parts
  TpcSet unused;                           // TPCs in no part
  [[nodiscard]] bool sound() const { return faults.empty(); }
};
[[nodiscard]] SplitReport check_split(const gpu::Topology& topology,
                                      const std::vector<Partition>& parts);

// A thread-block cluster runs inside one GPC. The largest number of blocks that can be co-scheduled
// when each SM holds `blocks_per_sm` of them (at least 1).
[[nodiscard]] std::uint32_t largest_cluster(const gpu::Topology& topology, const TpcSet& tpcs,
                                            std::uint32_t blocks_per_sm);
// An error says how large a cluster the set could host: launching a larger one would never start.
[[nodiscard]] Result<void> check_cluster(const gpu::Topology& topology, const TpcSet& tpcs,
                                         std::uint32_t cluster_blocks, std::uint32_t blocks_per_sm);

}  // namespace demarc::partition
