// A partition says on which TPCs its work may run, in which memory colours its data may lie, to
// which memory synchronisation domain its launches belong, and how much memory it may take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/color_set.hpp"
#include "demarc/device/topology.hpp"
#include "demarc/device/tpc_set.hpp"

namespace demarc::partition {

struct Partition {
  std::string name;
  gpu::TpcSet tpcs;
  color::ColorSet colors = {};  // where data may lie; none: memory is not divided
  std::uint64_t byte_cap = 0;   // the most device memory, in bytes; 0: no cap
  // The memory synchronisation domain of its launches, if the card has several; none: the domain
  // that all share.
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
// the memory synchronisation domains 0 ... n-1. Sizes differ by at most one TPC, except with
// gpc_aligned and side_aligned. These are errors: too many parts (with gpc_aligned more than GPCs;
// with side_aligned more than twice the GPCs of a side), an odd number of parts with side_aligned,
// and a topology without known sides where sides matter. If colors > 0, the colours 0 .. colors-1
// are shared out too, in equal runs; colors must be a multiple of parts.
[[nodiscard]] Result<std::vector<Partition>> split(const gpu::Topology& topology,
                                                   std::uint32_t parts, SplitStrategy strategy,
                                                   std::uint32_t colors = 0);

// Unequal parts that bound what neighbours can ask of the memory: parts 2/n ... n/n have an eighth
// of the TPCs together, at least one each, and part 1/n has all others. An error if nothing is left
// for part 1/n.
[[nodiscard]] Result<std::vector<Partition>> throttled_split(const gpu::Topology& topology,
                                                             std::uint32_t parts);

// The smallest set with at least `sms` SMs, packed from the front, that has none of the TPCs
// `taken`; for --sms N. invalid_input for 0, and for more SMs than the GPU has; missing_capability
// where fewer are left.
[[nodiscard]] Result<gpu::TpcSet> take_sms(const gpu::Topology& topology, std::uint32_t sms,
                                           const gpu::TpcSet& taken = {});
// The same with at least `percent` of the GPU's SMs (0 < percent <= 100); for --sms P%.
[[nodiscard]] Result<gpu::TpcSet> take_share(const gpu::Topology& topology, double percent,
                                             const gpu::TpcSet& taken = {});

// The largest number of blocks that a thread-block cluster can have if each SM holds
// `blocks_per_sm` of them (at least 1). A cluster runs inside one GPC.
[[nodiscard]] std::uint32_t largest_cluster(const gpu::Topology& topology, const gpu::TpcSet& tpcs,
                                            std::uint32_t blocks_per_sm);
// An error says how large a cluster the set could host: launching a larger one would never start.
[[nodiscard]] Result<void> check_cluster(const gpu::Topology& topology, const gpu::TpcSet& tpcs,
                                         std::uint32_t cluster_blocks, std::uint32_t blocks_per_sm);

}  // namespace demarc::partition
