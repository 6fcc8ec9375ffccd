// Where an address lies in the memory system. A hash bit is the XOR of some address bits
// (Fractional GPUs, RTAS 2019, section V; solved over GF(2)). So an index is a list of rows: bit i
// of the index is the parity of (address & rows[i]). If a count is not a power of two, a modulo
// stage is added. Where physical addresses are unknown, rows cover the bits inside a page and every
// page adds a constant.
//
// A label that a probe finds is one of many equivalent ones: only the space that the rows span is a
// property of the hardware.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc::gpu {

// An index by rows, of which there are at most 32.
struct LinearHash {
  std::vector<std::uint64_t> rows;

  [[nodiscard]] std::uint32_t operator()(std::uint64_t address) const;
  [[nodiscard]] std::uint32_t count() const { return std::uint32_t{1} << rows.size(); }
  [[nodiscard]] bool empty() const { return rows.empty(); }

  friend bool operator==(const LinearHash&, const LinearHash&) = default;
};

// `number` reads a number from the address. The result is that number plus the page's constant,
// modulo `modulus`.
struct ModuloStage {
  std::uint32_t modulus = 1;
  LinearHash number;

  [[nodiscard]] std::uint32_t operator()(std::uint64_t address,
                                         std::uint32_t page_constant = 0) const;

  friend bool operator==(const ModuloStage&, const ModuloStage&) = default;
};

// For maps that no closed form describes: the place of every chunk of a page, one list per kind of
// page.
struct ChunkTable {
  std::uint64_t chunk_bytes = 0;
  std::vector<std::vector<std::uint16_t>> page_kinds;  // [kind][chunk in page]

  friend bool operator==(const ChunkTable&, const ChunkTable&) = default;
};

// Two streams were kept apart by the parity of (offset & mask). Each figure is the time of one
// stream next to an aggressor of the other colour, divided by its time alone. 1.0 is perfect; 0
// means not measured.
struct MaskIsolation {
  std::uint64_t mask = 0;
  double dram_read = 0;
  double dram_write = 0;
  double l2_read = 0;
  double l2_write = 0;

  friend bool operator==(const MaskIsolation&, const MaskIsolation&) = default;
};

struct AddressMap {
  std::uint32_t address_bits = 0;      // rows use address bits [0, address_bits)
  std::uint64_t page_bytes = 0;        // 0: rows take physical addresses, no page constants
  std::uint64_t interleave_bytes = 0;  // longest aligned run that always lies in one slice
  std::uint32_t slices = 0;            // L2 slices
  std::uint32_t cache_ways = 0;        // 0: not known
  std::uint32_t miss_registers = 0;    // outstanding misses of a module; 0: not known
  LinearHash module;                   // own L2 sets, DRAM banks, controller and bus
  LinearHash bank;
  LinearHash set;
  std::optional<ModuloStage> stack;
  // The lengths of the runs of remainders of `stack` that share a path to memory, around the
  // modulus. Traffic to one run does not slow another. Empty: there are no such runs, or they were
  // not measured.
  std::vector<std::uint32_t> remainder_runs;
  std::optional<ChunkTable> table;
  std::vector<MaskIsolation> isolation;

  friend bool operator==(const AddressMap&, const AddressMap&) = default;
};

// Checks that every row lies within address_bits, that there are at most 32 rows, and that numbers
// are powers of two where they must be. `where` names the map in errors.
[[nodiscard]] Result<void> check_address_map(const AddressMap& map, const std::string& where);

// A basis whose lowest set bits (pivots) differ and occur in no other row, lowest pivot first.
[[nodiscard]] std::vector<std::uint64_t> low_pivot_basis(std::span<const std::uint64_t> rows);

// The part of the span of `rows` that is constant over aligned blocks of `granularity` bytes (a
// power of two). It is a low-pivot basis of n masks: if memory is given out in such blocks, it has
// 2^n colours.
[[nodiscard]] std::vector<std::uint64_t> masks_at_granularity(std::span<const std::uint64_t> rows,
                                                              std::uint64_t granularity);

// The space that two hashes have in common: bits of a bank hash and of a set hash together select a
// module.
[[nodiscard]] std::vector<std::uint64_t> common_masks(std::span<const std::uint64_t> a,
                                                      std::span<const std::uint64_t> b);

}  // namespace demarc::gpu
