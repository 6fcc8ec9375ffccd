// Slices that are remainders of a number. The modulus and the digits of the number are found from
// the kinds of the chunks of one page alone.
//
// How this works: XORing a pattern into the place of a chunk moves it to another slice. A pattern
// that flips a single digit of weight w moves the chunks of a slice to only two slices, w further
// and w back. The digit decides to which of the two a chunk goes; it is a parity of the chunk's
// address. The moves of one digit make a ring of all slices that the linear masks do not tell
// apart. The length of the ring is the modulus, and places on it give every digit its weight.
// Nothing else is assumed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "demarc/device/address_map.hpp"

namespace demarc::probe {

struct RemainderFinding {
  // Row i counts 2^i; empty rows count nothing. A page may complement a row and add to the number.
  gpu::ModuloStage stage;
  std::uint32_t slices = 0;  // in all
  double agreement = 0;      // share of the chunks whose slice follows from masks and remainder
};

// `kind_of` has the kind of latencies of each chunk of a page, in order; their number is a power of
// two. Two slices of one kind are told apart by where their chunks move. `constant_masks` (of byte
// addresses, independent) are constant on slices. Nothing if no modulus explains `least_agreement`
// of the chunks.
[[nodiscard]] std::optional<RemainderFinding> find_remainders(
    std::span<const std::uint32_t> kind_of, std::span<const std::uint64_t> constant_masks,
    std::uint64_t chunk_bytes, double least_agreement = 0.95);

}  // namespace demarc::probe
