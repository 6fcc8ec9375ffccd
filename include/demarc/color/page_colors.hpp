// How many colours a page table can divide, so that code which knows nothing of colours can run in
// them (docs/windows.md): the colours whose granules consist of whole pages.
#pragma once

#include <cstdint>
#include <span>

#include "demarc/base/result.hpp"
#include "demarc/device/device.hpp"

namespace demarc::color {

struct PageColors {
  std::uint32_t colors = 0;   // a power of two, two or more
  std::uint64_t granule = 0;  // bytes that follow each other in one colour, whole pages of 4 KiB
  friend constexpr bool operator==(const PageColors&, const PageColors&) = default;
};

// The most colours that a page table can divide of those that color_scheme() gives this card.
// missing_capability says why there are none: the description names no colours, or they change
// within a page. In the second case the message also says what to do instead.
[[nodiscard]] Result<PageColors> page_colors(const gpu::Device& device);

// Those of masks all of whose sums keep traffic apart. Bits of the masks beyond a page of
// `page_bytes` (a power of two; 0: no limit), in which memory is taken, are the same in the whole
// page and make no colours in it.
[[nodiscard]] Result<PageColors> page_colors(std::span<const std::uint64_t> masks,
                                             std::uint64_t page_bytes);

}  // namespace demarc::color
