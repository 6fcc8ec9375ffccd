// How the memory of a card is divided into colours. The measurements in its description decide:
// colours are parities of address bits if masks keep traffic apart (an H100), and runs of
// remainders if no mask does (an H200). A description that has neither is refused, because masks
// that do not separate would look like colours.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/color/color_set.hpp"
#include "demarc/color/law.hpp"
#include "demarc/color/remainder_coloring.hpp"
#include "demarc/color/translation.hpp"
#include "demarc/device/device.hpp"

namespace demarc::color {

// The greatest slowdown by a stream of the other colour that still counts as isolated.
inline constexpr double max_isolated = 1.2;

enum class Traffic { dram_reads, all };  // all: writes and L2 hits too

// Every sum of one or more masks, 2^n - 1 of them.
[[nodiscard]] std::vector<std::uint64_t> mask_sums(std::span<const std::uint64_t> masks);

// The largest space of masks whose sums all keep that traffic apart, as a low-pivot basis. Better
// masks are taken first.
[[nodiscard]] std::vector<std::uint64_t> isolating_masks(
    std::span<const gpu::MaskIsolation> measured, Traffic traffic, double most = max_isolated);

struct ColorScheme {
  std::uint32_t colors = 0;
  std::vector<std::uint64_t> masks;         // colours are the parities under these, or, if none,
  std::optional<RemainderHash> remainders;  // runs of its remainders,
  std::uint32_t paths = 0;                  // which lie on so many paths to memory

  // A pool that does not lend keeps about one in so many of the pages that it takes: those of one
  // constant, or all.
  [[nodiscard]] std::uint32_t pages_per_kept_page() const { return remainders ? 1 : 2; }
  // The card's colours for some of fewer that were asked for: as many more as the card has more,
  // or, if the one number does not divide the other, one for each, and the card's last ones stay
  // unused.
  [[nodiscard]] Result<ColorSet> colors_for(const ColorSet& asked) const;
  // For code in colour `color` of any arena. Which remainders a colour has is found on the card, so
  // their translation reads them when the module is loaded.
  [[nodiscard]] Result<ptx::Translation> translation(const ptx::Module& module,
                                                     std::uint32_t color) const;
  // The law that all shares have as far as it is known without an arena: its granule is theirs, but
  // where bytes lie must not be asked of it.
  [[nodiscard]] LawPtr law_of_granules() const;
};

// A scheme with at least `colors` colours (two or more; a power of two), in the longest possible
// runs of addresses. missing_capability says what the description lacks.
[[nodiscard]] Result<ColorScheme> color_scheme(const gpu::Device& device, std::uint32_t colors);

// Colours by masks of the caller's choice, whether they keep traffic apart or not; invalid_input as
// from Coloring::make().
[[nodiscard]] Result<ColorScheme> scheme_of_masks(std::span<const std::uint64_t> masks);

// check_failed in two cases: a sum of the masks was measured and does not keep all traffic apart,
// or the description has measurements but none of that sum.
[[nodiscard]] Result<void> check_masks(const gpu::Device& device,
                                       std::span<const std::uint64_t> masks);

}  // namespace demarc::color
