// Memory whose L2 slice is the remainder of a number. An H200 is such a card: it has two halves of
// 47 slices, so no parity of address bits names a slice. A colour is a run of remainders.
//
// The number of an address is address >> 11. Its lowest digits are XORed with higher bits of the
// address ("digits" below). The slice within a half is the number modulo 47. The half is one more
// parity. Address bits 8 to 16 hold six digits of the number, the half and two bits more. So each
// number has eight chunks of 256 bytes, all in the block of 128 KiB they came from. This was found
// by timing; docs/measurements/probe.md has the evidence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/place.hpp"
#include "demarc/device/address_map.hpp"

namespace demarc::color {

// Offsets count from the start of a page. A page has two constants: what higher address bits add to
// the digits, and what the page itself adds to the number.
struct RemainderHash {
  std::uint32_t modulus = 0;
  std::uint64_t page_bytes = 0;
  std::uint32_t chunk_shift = 0;         // 8: chunks of 256 bytes
  std::uint32_t block_shift = 0;         // 17: address bits from here on are digits as they are
  std::vector<std::uint64_t> digits;     // masks of the digits below them, lowest first
  std::uint64_t half = 0;                // mask of the half
  std::vector<std::uint64_t> free_bits;  // one address bit each, lowest first: with the digits they
                                         // make up all bits between chunk_shift and block_shift

  [[nodiscard]] std::uint32_t block_bytes() const { return std::uint32_t{1} << block_shift; }
  // Bits that a number has within a page.
  [[nodiscard]] std::uint32_t number_bits() const;
  // For the chunks of a page: RemainderSteps::page_shift.
  [[nodiscard]] std::uint32_t page_shift() const {
    return number_bits() + static_cast<std::uint32_t>(free_bits.size());
  }
  // Bytes of one number.
  [[nodiscard]] std::uint32_t unit_bytes() const {
    return block_bytes() >> static_cast<std::uint32_t>(digits.size());
  }
  // Number of a byte of a page whose digits have the constants `constant` (bit j: digit j).
  [[nodiscard]] std::uint32_t number(std::uint64_t offset, std::uint32_t constant) const;
};

// Makes the hash from a modulo stage and the mask of the half (0: there is one half). The last rows
// of the stage must be plain address bits, up to the top of the page; else invalid_input.
[[nodiscard]] Result<RemainderHash> remainder_hash(const gpu::ModuloStage& stage,
                                                   std::uint64_t half, std::uint64_t page_bytes,
                                                   std::uint64_t chunk_bytes);

// The hash that was measured on an NVIDIA H200, with pages of 2 MiB.
[[nodiscard]] RemainderHash h200_remainders();

// The address bits that each bit of the number, each free bit and each page brings. XORed together
// they are the bits of an address between chunk_shift and block_shift.
struct RemainderPatterns {
  std::vector<std::uint32_t>
      of_number;  // of the bits that a number has within a page, lowest first
  std::vector<std::uint32_t> of_free_bit;
};
// An error when the masks do not determine those bits.
[[nodiscard]] Result<RemainderPatterns> remainder_patterns(const RemainderHash& hash);

// How device code finds a byte of a colour, in chunks:
//   v = min(linear / chunk + begin, end)
//   c = v + (v * reciprocal >> 32 >> reciprocal_shift) * skipped
//   low = of_low[c % 256] ^ of_high[c / 256 % 256] ^ pages[c >> page_shift]
//   position = (c / 2^pattern_bits * 2^pattern_bits ^ low) * chunk + linear % chunk
// `begin` counts whole rounds and makes c begin where a page does. So nothing has to be added for
// the remainder that the colour begins with. That page is number `first_page`, and position 0 is
// where page 0 would lie. What comes before the colour's first chunk, or at or behind `end`, lies
// in the first_page pages in front of the arena or in the page behind it, whatever the tables hold.
// Nothing may be mapped there.
//
// The three tables are RemainderColoring::table(). Bits are XORed together, so the two tables of
// patterns have 256 entries each, not one for each chunk of a page. A line of the third serves 256
// MiB. So what a kernel looks up stays in the L1.
struct RemainderSteps {
  std::uint32_t chunk_shift = 0;   // bytes of a chunk
  std::uint32_t page_shift = 0;    // chunks of a page
  std::uint32_t pattern_bits = 0;  // the lowest of a chunk in its page: those that tables decide
  std::uint32_t begin = 0;         // v of the colour's first chunk
  std::uint32_t end = 0;           // of the first one behind all pages
  std::uint32_t reciprocal = 0;    // 2^(32 + shift) over the colour's chunks of a round, rounded up
  std::uint32_t reciprocal_shift = 0;  // the least that divides exactly up to `end`
  std::uint32_t skipped = 0;           // chunks of a round that are not the colour's
  std::uint32_t first_page = 0;        // of the arena, as c counts pages
  std::uint32_t pages_at = 0;          // byte of the table where pages[0] lies

  friend bool operator==(const RemainderSteps&, const RemainderSteps&) = default;
};

// Byte of RemainderColoring::table() where places of pages begin.
inline constexpr std::uint32_t remainder_table_of_pages = 1024;

// Colours of an arena: pages in an order in which numbers go on from one page to the next. Colour w
// holds the numbers whose remainder lies in [first, first + count) of its window, modulo the
// modulus.
//
// Byte `linear` of a colour lies at
//   n = linear / unit;  n += n / count * (modulus - count) + first;      the number
//   low = pages[n / 1024] ^ bits of n ^ free bits of linear
//   n / 64 << 17 | low << 8 | linear % 256
class RemainderColoring {
 public:
  struct Window {
    std::uint32_t first = 0;  // remainder, as seen from the start of the arena
    std::uint32_t count = 0;
  };

  // `page_constants`: the constant of the digits of each page of the arena, in its order.
  static Result<RemainderColoring> make(RemainderHash hash, std::vector<Window> windows,
                                        std::span<const std::uint32_t> page_constants);

  // The same pages in other colours.
  [[nodiscard]] Result<RemainderColoring> with_windows(std::vector<Window> windows) const;

  [[nodiscard]] const RemainderHash& hash() const { return hash_; }
  [[nodiscard]] std::uint32_t pages() const { return static_cast<std::uint32_t>(pages_.size()); }
  [[nodiscard]] std::uint32_t colors() const { return static_cast<std::uint32_t>(windows_.size()); }
  [[nodiscard]] Window window(std::uint32_t color) const { return windows_.at(color); }

  // Bytes of one colour.
  [[nodiscard]] std::uint64_t color_bytes(std::uint32_t color) const;
  [[nodiscard]] ArenaByte position(LinearByte linear, std::uint32_t color) const;

  // missing_capability for an arena beyond 2^30 chunks (256 GiB on an H200), for an even modulus,
  // and for digits that change more than 8 bits of a chunk's place.
  [[nodiscard]] Result<RemainderSteps> steps(std::uint32_t color) const;
  // The table of all colours, as it lies in memory: 256 times 16 bits ("of_low"), as many again
  // ("of_high"), then 8 bits per page ("pages"), with as many entries as the modulus in front of
  // these and one behind them. Patterns and pages may lie apart.
  [[nodiscard]] std::vector<std::byte> table() const;

 private:
  RemainderColoring() = default;
  [[nodiscard]] std::uint32_t pattern_of_chunk(std::uint32_t chunk) const;
  RemainderHash hash_;
  RemainderPatterns patterns_;
  std::vector<Window> windows_;
  std::vector<std::uint16_t> pages_;  // what the constant of each adds to the low bits
};

// Whether each chunk of page `page` of an arena, in order, has a remainder of the window.
// `constant`: that of the page's digits.
[[nodiscard]] std::vector<bool> own_chunks(const RemainderHash& hash,
                                           RemainderColoring::Window window, std::uint64_t page,
                                           std::uint32_t constant);

}  // namespace demarc::color
