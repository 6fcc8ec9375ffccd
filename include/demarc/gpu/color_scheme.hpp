// How the memory of a card is divided into colours, by what its description says was measured:
// parities of address bits where masks keep traffic apart (an H100), runs of remainders where none
// does (an H200). A description that knows of neither is refused: masks that do not separate would
// look like colours.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/gpu/device.hpp"
#include "demarc/gpu/remainder_coloring.hpp"

namespace demarc::gpu {

// The greatest slowdown by a stream of the other colour that still counts as isolated.
inline constexpr double most_isolated = 1.2;

enum class Traffic { dram_reads, all };  // all: writes and L2 hits too

// Every sum of one or more masks, 2^n - 1 of them.
[[nodiscard]] std::vector<std::uint64_t> mask_sums(std::span<const std::uint64_t> masks);

// The largest space of masks, best first, all of whose sums keep that traffic apart; low-pivot
// basis.
[[nodiscard]] std::vector<std::uint64_t> isolating_masks(std::span<const MaskIsolation> measured,
                                                         Traffic traffic,
                                                         double most = most_isolated);

struct ColorScheme {
  std::uint32_t colors = 0;
  std::vector<std::uint64_t> masks;         // colours are the parities under these, or, if none,
  std::optional<RemainderHash> remainders;  // runs of its remainders,
  std::uint32_t paths = 0;                  // which lie on so many paths to memory
};

// At least `colors` colours (two or more), a power of two, in the longest runs of addresses that
// there are. missing_capability says what the description lacks.
[[nodiscard]] Result<ColorScheme> color_scheme(const Device& device, std::uint32_t colors);

// check_failed when the description has measurements of one of the masks' sums and it does not keep
// all traffic apart, or has some and it is not among them.
[[nodiscard]] Result<void> check_masks(const Device& device, std::span<const std::uint64_t> masks);

}  // namespace demarc::gpu
