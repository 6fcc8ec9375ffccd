// Which thread blocks of a kernel touch the same data, and how much: what the `locality` policy
// places by. It comes from a locality map (`demarc locality --json --maps`, schema
// demarc.locality/1) or is filled by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sim/units.hpp"

namespace demarc::sim {

// Blocks `low` < `high` share `amount`, in whatever the map counts.
struct SharedCell {
  BlockNumber low;
  BlockNumber high;
  std::uint64_t amount = 0;
};

class BlockSharing {
 public:
  struct Earlier {
    BlockNumber block;
    std::uint64_t amount;
  };

  BlockSharing() = default;
  // Cells of blocks from `blocks` on are left out.
  BlockSharing(std::uint32_t blocks, const std::vector<SharedCell>& cells);

  [[nodiscard]] std::uint32_t blocks() const {
    return static_cast<std::uint32_t>(first_.empty() ? 0 : first_.size() - 1);
  }
  // Blocks of lower index that share with `block`; none for a block the map does not know.
  [[nodiscard]] std::span<const Earlier> earlier(BlockNumber block) const {
    if (block >= BlockNumber(blocks())) return {};
    return std::span(earlier_).subspan(first_[block], first_[block + 1] - first_[block]);
  }

 private:
  PerIndex<BlockNumber, std::size_t> first_;  // in earlier_; one more for the end
  std::vector<Earlier> earlier_;
};

// Reads inter.map. Errors name `source` and the path of the key.
[[nodiscard]] Result<BlockSharing> parse_block_sharing(std::string_view text,
                                                       std::string_view source);

}  // namespace demarc::sim
