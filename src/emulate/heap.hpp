// Device-side malloc and free. What is free, and the margins between blocks, no access finds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "warp.hpp"

namespace demarc::emulate {

class DeviceHeap {
 public:
  static constexpr std::uint64_t base = 0x0000'6800'0000'0000;
  static constexpr std::uint64_t bytes = 8 << 20;    // CUDA's default
  static constexpr std::uint64_t wide_margin = 256;  // between blocks, as long as there is room

  explicit DeviceHeap(bool tracks_writes) : tracks_writes_(tracks_writes) {}

  // The address; 0 when there is no room. `line` is that of the call. Places are taken in turn, so
  // that what was freed is given out again as late as possible.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t size, std::uint32_t line);
  // Empty when it was freed, else why not.
  [[nodiscard]] std::string release(std::uint64_t address, std::uint32_t line);
  // The block that has all of [low, high); null: none.
  [[nodiscard]] const Region* find(std::uint64_t low, std::uint64_t high) const;
  // What lies at an address of the heap that find() does not find, in words.
  [[nodiscard]] std::string describe(std::uint64_t address) const;

  [[nodiscard]] static bool contains(std::uint64_t address) {
    return address - base < wide_margin + bytes;
  }

 private:
  struct Block {
    std::uint64_t size = 0;
    std::uint32_t line = 0;  // line of the malloc
    Region* region = nullptr;
  };
  struct Freed {
    std::uint64_t size = 0;
    std::uint32_t line = 0;  // line of the free
  };

  [[nodiscard]] std::optional<std::uint64_t> gap(std::uint64_t from, std::uint64_t size,
                                                 std::uint64_t margin) const;

  bool tracks_writes_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(wide_margin + bytes);
  std::vector<std::uint8_t> shadow_ = std::vector<std::uint8_t>(wide_margin + bytes);
  std::map<std::uint64_t, Block> used_;  // by offset
  std::map<std::uint64_t, Freed> freed_;
  // Regions are used again and never deleted: an access remembers the one that it found last.
  std::deque<Region> regions_;
  std::set<Region*> spare_;  // blocks that were freed had these
  std::uint64_t next_ = wide_margin;
  std::uint64_t margin_ = wide_margin;      // that blocks get until something is freed
  std::optional<std::uint64_t> too_large_;  // there is no room for so much until then
};

}  // namespace demarc::emulate
