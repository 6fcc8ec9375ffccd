// Where the chunks of a slice go when a pattern is XORed into their index, and which bits of the
// index decide it. Indices are those of the chunks of a page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace demarc::probe {

using Labels = std::vector<std::uint32_t>;  // slice of each chunk, from 0 on

struct Digit {
  std::uint32_t pattern = 0;  // flips this digit and no other
  std::uint32_t mask = 0;  // its value is the parity of (index & mask), or that of the complement
};

struct ChunkMoves {
  std::vector<Digit> digits;
  std::vector<std::uint32_t> half_flips;  // flips constant i, moves no chunk otherwise
};

// `constants`: masks over indices that are constant on slices; patterns of digits leave them alone.
// Digits whose masks differ by constants are one; of these masks the one that no half flip changes
// is given.
[[nodiscard]] ChunkMoves find_moves(const Labels& slice_of,
                                    std::span<const std::uint32_t> constants);

// Slices that look alike have been given one label: takes apart those whose chunks move to twice as
// many others.
[[nodiscard]] Labels split_twins(const Labels& slice_of, std::span<const Digit> digits);

[[nodiscard]] std::uint32_t label_count(const Labels& labels);

}  // namespace demarc::probe
