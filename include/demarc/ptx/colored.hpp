// PTX in, PTX out: every access to global memory goes through coloured addressing, so that an
// unchanged kernel keeps to the chunks of one colour [Fractional GPUs, section V-F; there the
// driver's page tables do it, here a few integer instructions do].
//
// The kernel computes with linear addresses: consecutive bytes of one colour's memory. Before an
// access, the linear address becomes the position of that byte in the arena:
//
//   and.b64 t, a, ~0x3fff;  add.s64 a, a, t;      // a 0 inserted at bit 14, the mask's lowest bit
//   (lo >> 4 ^ lo >> 5 ^ color << 14) & 0x4000    // that bit, for the mask 0xc4000
//
// Because inserting a bit doubles what lies above it, a pointer handed to the kernel is
// colored_pointer(): the arena's address divided by the number of colours, plus the linear offset.
// Then the insertion restores the arena's address and nothing needs subtracting. The arena's
// address must be a multiple of its page size, and no pointer may be used on the host as it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct ColoredAddressing {
  // Lowest bits differ and occur in no other mask, lowest first; all below bit 32. At least one.
  std::vector<std::uint64_t> masks;
  // Bit i: what parity(position & masks[i]) must be (colour XOR the page constant of the arena).
  std::uint32_t color = 0;
};

// Which accesses go to the coloured memory; the others keep their addresses.
enum class ColoredAccesses { all, loads, stores };

// The text of `module` with coloured accesses in every function; instructions it does not concern
// stay as they were written. Global variables of the module keep their own addresses. Errors name
// the line: an access whose address cannot be told to be of this memory (generic addressing where
// shared or local addresses are made generic, an address taken of a global variable), or an
// instruction that addresses memory in another way (bulk and tensor copies, textures, multimem).
[[nodiscard]] Result<std::string> rewrite_colored(const Module& module,
                                                  const ColoredAddressing& addressing,
                                                  ColoredAccesses accesses = ColoredAccesses::all);

// The same for colours that are remainders (gpu/remainder_coloring.hpp), in about 35 machine
// instructions and a load of 16 bits: address and arena are those of byte 0, linear addresses
// follow each other from the arena's address on.
struct RemainderAddressing {
  std::uint64_t arena = 0;       // address, a multiple of its page size
  std::uint64_t pages = 0;       // address of the table: 16 bits a page
  std::uint32_t page_count = 0;  // its entries
  std::uint32_t modulus = 0;     // of these remainders the colour has `count` from `first` on
  std::uint32_t first = 0;       // below modulus
  std::uint32_t count = 0;       // below 64
  std::uint32_t chunk_shift = 0;
  std::uint32_t block_shift = 0;
  std::uint32_t digits = 0;              // bits of a number below a block
  std::vector<std::uint32_t> of_number;  // patterns of address bits, see RemainderPatterns
  std::vector<std::uint32_t> of_free_bit;
};

[[nodiscard]] Result<std::string> rewrite_remainders(
    const Module& module, const RemainderAddressing& addressing,
    ColoredAccesses accesses = ColoredAccesses::all);

// What a kernel gets as the address of byte `linear` of the coloured memory.
[[nodiscard]] std::uint64_t colored_pointer(std::uint64_t arena_address, std::uint64_t linear,
                                            const ColoredAddressing& addressing);

}  // namespace demarc::ptx
