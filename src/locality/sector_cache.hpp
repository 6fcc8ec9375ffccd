// A cache of lines with sectors, for predictions: set-associative with sixteen ways and sets
// that neighbouring lines take in turn, least recently used line replaced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace demarc::locality {

class SectorCache {
 public:
  SectorCache(std::uint64_t bytes, std::uint32_t line_bytes, std::uint32_t sector_bytes)
      : sectors_per_line_(std::max(1U, line_bytes / std::max(1U, sector_bytes))) {
    const std::uint64_t lines = bytes / std::max(1U, line_bytes);
    sets_ = lines / ways;
    if (sets_ > 0) entries_.resize(sets_ * ways);
  }

  struct Looked {
    bool hit = false;
    std::uint32_t written_back = 0;  // dirty sectors of the line that had to go
  };
  // `sector` is an address divided by the sector size.
  Looked look_up(std::uint64_t sector, bool allocate, bool dirty) {
    Looked result;
    if (sets_ == 0) return result;
    const std::uint64_t line = sector / sectors_per_line_;
    const std::uint64_t bit = std::uint64_t{1} << (sector % sectors_per_line_);
    Entry* const set = &entries_[set_of(line) * ways];
    Entry* victim = set;
    for (Entry* entry = set; entry != set + ways; ++entry) {
      if (entry->line == line && entry->valid != 0) {
        result.hit = (entry->valid & bit) != 0;
        entry->used = ++clock_;
        if (result.hit || allocate) entry->valid |= bit;
        if (dirty && (result.hit || allocate)) entry->dirty |= bit;
        return result;
      }
      if (entry->used < victim->used) victim = entry;
    }
    if (!allocate) return result;
    result.written_back = static_cast<std::uint32_t>(__builtin_popcountll(victim->dirty));
    *victim = {line, bit, dirty ? bit : 0, ++clock_};
    return result;
  }

  [[nodiscard]] std::uint64_t dirty_sectors() const {
    std::uint64_t count = 0;
    for (const Entry& entry : entries_)
      count += static_cast<std::uint64_t>(__builtin_popcountll(entry.dirty));
    return count;
  }

 private:
  static constexpr std::uint64_t ways = 16;
  struct Entry {
    std::uint64_t line = 0;
    std::uint64_t valid = 0;
    std::uint64_t dirty = 0;
    std::uint64_t used = 0;
  };
  [[nodiscard]] std::uint64_t set_of(std::uint64_t line) const {
    // Neighbouring lines take all sets in turn; every round starts elsewhere.
    return (line + line / sets_ * 0x9e37U) % sets_;
  }

  std::uint64_t sectors_per_line_;
  std::uint64_t sets_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace demarc::locality
