// How a page table reaches a share: stretches of its linear bytes that lie one after the other on a
// page of the arena, so that each is one mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/law.hpp"
#include "demarc/color/place.hpp"

namespace demarc::color {

struct PagePiece {
  LinearByte linear = {};
  ArenaByte at = {};
  std::uint64_t bytes = 0;
  friend constexpr bool operator==(const PagePiece&, const PagePiece&) = default;
};

// Pages of 4 KiB are the smallest of every GPU.
inline constexpr std::uint64_t smallest_page_bytes = 4096;

// missing_capability where colours change within `least` bytes. The message says so, and what to do
// about a program that needs the page table, since its code has no PTX.
[[nodiscard]] Result<void> check_survives_pages(const Law& law,
                                                std::uint64_t least = smallest_page_bytes);

// The fewest that hold the extent, in its order; its ends are multiples of the law's granule.
// Errors are those of check_survives_pages(). `table` is the law's.
[[nodiscard]] Result<std::vector<PagePiece>> page_pieces(const Law& law,
                                                         std::span<const std::byte> table,
                                                         const Extent& extent,
                                                         std::uint64_t page_bytes,
                                                         std::uint64_t least);

}  // namespace demarc::color
