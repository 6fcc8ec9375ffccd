// Makes pools of coloured memory, divides them into shares and allocates in these.
#include "demarc/card/colored_memory.hpp"

#include <algorithm>

#include "colors/pool_kinds.hpp"
#include "demarc/base/rounding.hpp"

namespace demarc::cuda {
namespace {

// Buffers begin at multiples of this, so that 16-byte vectors and whole sectors stay together.
constexpr std::uint64_t buffer_alignment = 256;

std::uint64_t rounded(std::uint64_t bytes) {
  return std::max(buffer_alignment, round_up(bytes, buffer_alignment));
}

Result<void> check_disjoint(std::span<const ShareRequest> shares) {
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      const color::ColorSet both = shares[i].colors.common(shares[before].colors);
      if (!both.empty()) return invalid_input("colours {} are in two shares", to_string(both));
    }
  }
  return {};
}

std::uint64_t pages_of(std::uint64_t bytes, std::uint64_t page_bytes) {
  return std::max<std::uint64_t>(bytes / page_bytes, 1);
}

}  // namespace

Result<std::unique_ptr<PoolColors>> find_colors(const CardPointer& card,
                                                const color::ColorScheme& scheme,
                                                PageArena& arena) {
  return scheme.remainders ? find_remainders(card, scheme, arena)
                           : find_parities(card->gpu(), scheme.masks, arena);
}

Result<std::shared_ptr<ColoredPool>> ColoredPool::create(const CardPointer& card,
                                                         const color::ColorScheme& scheme,
                                                         std::uint64_t bytes,
                                                         std::span<const ShareRequest> shares,
                                                         Lending lending) {
  DEMARC_CHECK(check_disjoint(shares));
  DEMARC_TRY(const std::size_t page_bytes, PhysicalMemory::granularity(*card->gpu()));
  DEMARC_TRY(PageArena arena, PageArena::create(card->gpu(), pages_of(bytes, page_bytes), lending));
  DEMARC_TRY(auto colors, find_colors(card, scheme, arena));
  return adopt(std::move(arena), std::move(colors), shares);
}

Result<std::shared_ptr<ColoredPool>> ColoredPool::adopt(PageArena arena,
                                                        std::unique_ptr<PoolColors> colors,
                                                        std::span<const ShareRequest> shares) {
  DEMARC_CHECK(check_disjoint(shares));
  std::shared_ptr<ColoredPool> pool(new ColoredPool(std::move(arena), std::move(colors)));
  for (const ShareRequest& request : shares) {
    DEMARC_TRY(ShareColors own, pool->colors_->share(pool->arena_, request.colors));
    const std::uint64_t bytes = own.bytes;
    ColoredUsage usage;
    usage.capacity_bytes = request.byte_cap != 0 ? std::min(bytes, request.byte_cap) : bytes;
    pool->shares_.push_back({std::move(own),
                             request.colors,
                             request.byte_cap,
                             {color::LinearByte(), color::LinearByte(bytes)},
                             usage});
  }
  return pool;
}

Result<ColoredBuffer> ColoredPool::allocate(std::size_t share_index, std::uint64_t bytes) {
  if (share_index >= shares_.size()) {
    return invalid_input("share {}: the pool has {}", share_index, shares_.size());
  }
  Share& share = shares_[share_index];
  // Rounding must not make little of what is more than the share has.
  const std::uint64_t wanted = bytes <= share.usage.capacity_bytes ? rounded(bytes) : bytes;
  const std::uint64_t in_use = share.usage.used_bytes + share.usage.wasted_bytes;
  if (share.byte_cap != 0 && wanted > share.byte_cap - in_use) {
    return missing_capability(
        "{} bytes of coloured memory: the partition may use {} bytes and uses {}", bytes,
        share.byte_cap, in_use);
  }
  if (const auto first = share.free.take(wanted)) {
    share.usage.used_bytes += bytes;
    share.usage.wasted_bytes += wanted - bytes;
    return ColoredBuffer(shared_from_this(), share_index, share.colors,
                         color::Extent{*first, bytes});
  }
  return missing_capability("{} bytes of coloured memory: the largest free run of this share is {}",
                            bytes, share.largest_free());
}

std::uint64_t ColoredPool::Share::largest_free() const {
  const std::uint64_t largest = free.longest();
  if (byte_cap == 0) return largest;
  return std::min(largest, byte_cap - usage.used_bytes - usage.wasted_bytes);
}

ColoredUsage ColoredPool::usage(std::size_t share) const {
  ColoredUsage usage = shares_.at(share).usage;
  usage.largest_free_bytes = shares_[share].largest_free();
  return usage;
}

void ColoredPool::release(std::size_t share_index, const color::Extent& extent) {
  Share& share = shares_[share_index];
  const std::uint64_t size = rounded(extent.bytes);
  share.usage.used_bytes -= extent.bytes;
  share.usage.wasted_bytes -= size - extent.bytes;
  share.free.put(extent.first, extent.first + size);
}

}  // namespace demarc::cuda
