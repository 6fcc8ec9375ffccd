// Memory whose colours are parities of address bits, as on an H100.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/place.hpp"

namespace demarc::color {

struct Parities;

// Bytes that follow each other and have one parity under each of the masks, from a multiple of them
// on: the lowest bit of any mask.
[[nodiscard]] std::uint64_t granule_of(std::span<const std::uint64_t> masks);
// Where a byte of the memory lies whose parity under masks[i] is bit i of the colour.
[[nodiscard]] ArenaByte position_under(const Parities& parities, LinearByte linear);
// Where it lies at least, and at most, whatever the inserted bits are.
[[nodiscard]] std::pair<ArenaByte, ArenaByte> bounds_under(const Parities& parities,
                                                           LinearByte linear);

// Colours of an arena: its pages have equal constants and follow each other in virtual addresses,
// or they lie in groups, and their numbers there are bits of the masks. Memory of one colour is a
// sequence of chunks.
//
// Example: one mask 0xc4000, lowest bit 14: two colours in chunks of 16 KiB; chunk k of colour w
// starts at v + (parity(v & mask) ^ constant ^ w) << 14, where v is k << 14 with a 0 inserted at
// bit 14.
class Coloring {
 public:
  // `masks` are independent, at most 8, and lie below `page_bytes` (a power of two; 0: no limit).
  static Result<Coloring> make(std::span<const std::uint64_t> masks, std::uint64_t page_bytes);

  [[nodiscard]] std::span<const std::uint64_t> masks() const { return masks_; }
  [[nodiscard]] std::uint32_t colors() const { return std::uint32_t{1} << masks_.size(); }
  [[nodiscard]] std::uint64_t chunk_bytes() const;
  [[nodiscard]] std::uint64_t page_bytes() const { return page_bytes_; }

  // Bit i is parity(position & masks()[i]) ^ bit i of the constant.
  [[nodiscard]] std::uint32_t color(ArenaByte position, std::uint32_t page_constant = 0) const;

  // Where a byte of the memory of one colour lies, and back. Bijective between [0, n) and the bytes
  // of that colour in [0, n * colors()) if n * colors() is a multiple of twice the highest mask's
  // lowest bit.
  [[nodiscard]] ArenaByte position(LinearByte linear, std::uint32_t color,
                                   std::uint32_t page_constant = 0) const;
  [[nodiscard]] LinearByte linear(ArenaByte position) const;

  // Start of the k-th chunk of a colour.
  [[nodiscard]] ArenaByte chunk(std::uint64_t k, std::uint32_t color,
                                std::uint32_t page_constant = 0) const;

  // Computes the constant of these masks from the constant of the rows that span them: bit i is the
  // parity of the row constants that make up masks()[i]. A mask outside the span is an error.
  [[nodiscard]] Result<std::uint32_t> constant_from_rows(std::span<const std::uint64_t> rows,
                                                         std::uint32_t row_constant) const;

  friend bool operator==(const Coloring&, const Coloring&) = default;

 private:
  std::vector<std::uint64_t> masks_;  // low-pivot basis
  std::uint64_t page_bytes_ = 0;
};

}  // namespace demarc::color
