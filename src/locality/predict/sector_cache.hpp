// A cache of lines with sectors, for predictions: set-associative with sixteen ways and sets
// that neighbouring lines take in turn, least recently used line replaced.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace demarc::locality {

// Bit s: sector s of a line.
using SectorMask = std::uint32_t;

[[nodiscard]] inline std::uint32_t sectors_in(SectorMask mask) {
  return static_cast<std::uint32_t>(std::popcount(mask));
}

class SectorCache {
 public:
  SectorCache(std::uint64_t bytes, std::uint32_t line_bytes) {
    const std::uint64_t lines = bytes / std::max(1U, line_bytes);
    sets_ = lines / ways;
    if (sets_ > 0) entries_.resize(sets_ * ways);
  }

  struct Looked {
    SectorMask hits = 0;
    std::uint32_t written_back = 0;  // dirty sectors of the line that had to go
  };
  // Looks for the sectors `asked` of a line; `fill`, those that are valid afterwards beside the
  // ones before, 0: the cache keeps as it is; `dirty`: of those asked and kept.
  Looked look_up(std::uint64_t line, SectorMask asked, SectorMask fill, bool dirty) {
    Looked result;
    if (sets_ == 0) return result;
    Entry* const set = &entries_[set_of(line) * ways];
    Entry* victim = set;
    for (Entry* entry = set; entry != set + ways; ++entry) {
      if (entry->line == line && entry->valid != 0) {
        result.hits = entry->valid & asked;
        entry->used = ++clock_;
        entry->valid |= fill;
        if (dirty) entry->dirty |= asked & entry->valid;
        return result;
      }
      if (entry->used < victim->used) victim = entry;
    }
    if (fill == 0) return result;
    result.written_back = sectors_in(victim->dirty);
    *victim = {line, ++clock_, fill, dirty ? asked & fill : 0};
    return result;
  }

  [[nodiscard]] std::uint64_t dirty_sectors() const {
    std::uint64_t count = 0;
    for (const Entry& entry : entries_) count += sectors_in(entry.dirty);
    return count;
  }

 private:
  static constexpr std::uint64_t ways = 16;
  struct Entry {
    std::uint64_t line = 0;
    std::uint64_t used = 0;
    SectorMask valid = 0;
    SectorMask dirty = 0;
  };
  [[nodiscard]] std::uint64_t set_of(std::uint64_t line) const {
    // Neighbouring lines take all sets in turn; every round starts elsewhere.
    return (line + line / sets_ * 0x9e37U) % sets_;
  }

  std::uint64_t sets_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace demarc::locality
