// The instructions that turn a linear address into the address of that byte in the arena, for
// ptx::rewrite_colored().
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/color/place.hpp"
#include "demarc/ptx/colored.hpp"

namespace demarc::color {

// Colours that are parities. The linear address becomes the position of that byte in the arena:
//
//   a % 2^14 | a / 2^14 * 2^15               // a 0 inserted at bit 14, the mask's pivot
//   (a >> 17 ^ a >> 18 ^ color) % 2 << 14    // that bit, for the mask 0xc4000
//
// Inserting a bit doubles what lies above it. So a pointer that the kernel gets is
// colored_pointer(): the arena's address divided by the number of colours, plus the linear offset.
// Then the insertion restores the arena's address, and nothing needs to be subtracted. The arena's
// address must be a multiple of its page size times the number of colours, and of twice the
// greatest bit of a mask.
struct Parities {
  // At least one mask, all of whose bits are below bit 32.
  std::vector<std::uint64_t> masks;
  // Bit i says what parity(position & masks[i]) must be: the colour XOR the page constant of the
  // arena.
  std::uint32_t color = 0;
  // The bit of each mask that is inserted, ascending. It occurs in no other mask. Empty: the lowest
  // ones.
  std::vector<std::uint32_t> pivots = {};

  [[nodiscard]] std::uint32_t pivot(std::size_t mask) const {
    return pivots.empty() ? static_cast<std::uint32_t>(std::countr_zero(masks[mask]))
                          : pivots[mask];
  }
  friend bool operator==(const Parities&, const Parities&) = default;
};

// The same for colours that are remainders, by color::RemainderSteps
// (color/remainder_coloring.hpp). It takes about 20 machine instructions; three of them are loads
// from tables that the L1 holds. Linear addresses follow each other from the start of a window of
// addresses, which may be the arena itself. Those that do not belong to the colour lead in front of
// the arena or behind it. If text is rewritten before its colours are known, it knows their shape:
struct RemainderShape {
  std::uint32_t chunk_shift = 0;
  std::uint32_t page_shift = 0;
  std::uint32_t pattern_bits = 0;
  // False: the text serves only constants whose reciprocal_shift is 0. An access then takes one
  // instruction less.
  bool shifts_quotients = true;
};

// ... and finds the rest in its constant variable `demarc_colors`, see colored_constants().
struct RemainderConstants {
  std::uint64_t arena = 0;   // address of position 0, a multiple of the page size
  std::uint64_t table = 0;   // address of RemainderColoring::table()
  std::uint64_t pages = 0;   // address of pages[0]
  std::uint32_t before = 0;  // number of the window's first chunk among addresses, less `begin`
  std::uint32_t end = 0;
  std::uint32_t reciprocal = 0;
  std::uint32_t reciprocal_shift = 0;
  std::uint32_t skipped = 0;
  std::uint32_t unused = 0;
};

struct RemainderAddressing {
  RemainderShape shape;
  RemainderConstants constants;
};

// Errors: masks, colours or remainders that do not fit together.
[[nodiscard]] Result<ptx::Translation> translation_of(const Parities& parities);
[[nodiscard]] Result<ptx::Translation> translation_of(const RemainderAddressing& addressing,
                                                      const ptx::Module& module);
[[nodiscard]] Result<ptx::Translation> translation_of(RemainderShape shape,
                                                      const ptx::Module& module);

// The address that a kernel gets for a byte of the coloured memory.
[[nodiscard]] DeviceAddress colored_pointer(DeviceAddress arena, LinearByte linear,
                                            const Parities& parities);

}  // namespace demarc::color
