// How a page table reaches a share: mappings of bytes that lie one after the other on a page of the
// arena.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/law.hpp"
#include "demarc/color/place.hpp"
#include "demarc/device/pages.hpp"

namespace demarc::color {

struct PagePiece {
  LinearByte linear = {};
  ArenaByte at = {};
  std::uint64_t bytes = 0;
  friend constexpr bool operator==(const PagePiece&, const PagePiece&) = default;
};

// missing_capability where colours change within gpu::smallest_page_bytes. The message says so, and
// what to do about a program that needs the page table, since its code has no PTX.
[[nodiscard]] Result<void> check_survives_pages(const Law& law);

// The fewest that show an extent within a page of the window, whose ends are multiples of the law's
// granule: 63 for 2 MiB of two colours in runs of 16 KiB, on two pages of opposite constants. Each
// mapping adds two borders at most, so fewer cannot make the 125 that there are. They are mapped in
// their order, and each replaces what earlier ones show at its addresses: the first may show other
// shares' bytes, over which the others lie. Errors are those of check_survives_pages(), too.
// `table` is the law's.
[[nodiscard]] Result<std::vector<PagePiece>> page_pieces(const Law& law,
                                                         std::span<const std::byte> table,
                                                         const Extent& extent,
                                                         std::uint64_t page_bytes);

}  // namespace demarc::color
