// Which constant each page adds to the colour of its chunks, found by timing L2 hits
// [Fractional GPUs, section V, done in user space]. Physical address bits above a page are unknown;
// what they contribute to the parity of a mask is one bit a page.
//
// An L2 slice is recognised by its latencies from several SMs. On the first page, whose constants
// are called 0, each sample's slice and parity are seen together; on every other page the slice of
// a sample tells what its parity is, and the offset what it would be with constant 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::study {

// latencies[i]: one sample, a value from each SM, in cycles; offsets[i]: where it was taken.
struct LatencySamples {
  std::vector<std::uint64_t> offsets;
  std::vector<std::vector<float>> latencies;
};

struct PageColors {
  std::vector<std::uint32_t> constants;  // bit j: of masks[j]; one entry a page
  std::vector<float> agreement;          // share of a page's samples that voted for it
};

// `reference` lies within page 0, `samples` anywhere in `pages` pages of `page_bytes`. check_failed
// when the masks are not a function of the slice: then they are no colours of this card.
[[nodiscard]] Result<PageColors> find_page_colors(const LatencySamples& reference,
                                                  const LatencySamples& samples,
                                                  std::span<const std::uint64_t> masks,
                                                  std::uint64_t page_bytes, std::uint32_t pages);

}  // namespace demarc::study
