// Which thread blocks of a kernel touch the same data, and how much. The `locality` policy places
// blocks by it. It comes from a locality map (`demarc locality --json --maps`, schema
// demarc.locality/1) or is filled by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

// Places that exactly these blocks touch, ascending. A place is what the map counts, a sector of
// the L2 for example.
struct SharedPlaces {
  std::uint64_t places = 0;
  std::vector<BlockNumber> blocks;
};

class BlockSharing {
 public:
  using SetIndex = Index<struct SharedPlacesTag>;

  BlockSharing() = default;
  // Blocks from number `blocks` on are left out of each set.
  BlockSharing(std::uint32_t blocks, std::vector<SharedPlaces> sets);

  [[nodiscard]] std::uint32_t blocks() const {
    return static_cast<std::uint32_t>(of_block_.size());
  }
  [[nodiscard]] const PerIndex<SetIndex, SharedPlaces>& sets() const { return sets_; }
  // The sets that the block is in; none for a block the map does not know.
  [[nodiscard]] std::span<const SetIndex> sets_of(BlockNumber block) const {
    if (block >= BlockNumber(blocks())) return {};
    return of_block_[block];
  }
  // All blocks, in an order in which those that share most lie close to each other. An SM that runs
  // a stretch of them together reads least.
  [[nodiscard]] std::span<const BlockNumber> order() const { return order_; }

 private:
  PerIndex<SetIndex, SharedPlaces> sets_;
  PerIndex<BlockNumber, std::vector<SetIndex>> of_block_;
  std::vector<BlockNumber> order_;
};

// Reads inter.map.size and inter.sets. Errors name `source` and the path of the key.
[[nodiscard]] Result<BlockSharing> parse_block_sharing(std::string_view text,
                                                       std::string_view source);

}  // namespace demarc::sim
