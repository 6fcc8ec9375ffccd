// Ranges of numbers that are free: given out by first fit, joined again where they meet.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace demarc {

// `At`: a Location, or a bare number.
template <class At>
class FreeRanges {
 public:
  FreeRanges() = default;
  FreeRanges(At begin, At end) { put(begin, end); }

  // begin to end - 1 are free now, and were not. Nothing changes unless begin < end.
  void put(At begin, At end) {
    if (begin >= end) return;
    const auto above = ranges_.lower_bound(begin);
    const auto into = above != ranges_.begin() && std::prev(above)->second == begin
                          ? std::prev(above)
                          : ranges_.emplace_hint(above, begin, end);
    into->second = end;
    if (const auto next = ranges_.find(end); next != ranges_.end()) {
      into->second = next->second;
      ranges_.erase(next);
    }
  }
  // Takes the first `count` numbers, at least 1, that follow each other from `from` on; gives the
  // first one of them.
  [[nodiscard]] std::optional<At> take(std::uint64_t count, At from = {}) {
    const auto room = std::find_if(ranges_.begin(), ranges_.end(), [&](const auto& range) {
      const At first = std::max(range.first, from);
      return first < range.second && range.second - first >= count;
    });
    if (room == ranges_.end()) return std::nullopt;
    const auto [begin, end] = *room;
    const At first = std::max(begin, from);
    ranges_.erase(room);
    put(begin, first);
    put(first + count, end);
    return first;
  }
  [[nodiscard]] std::uint64_t longest() const {
    std::uint64_t longest = 0;
    for (const auto& [begin, end] : ranges_) longest = std::max(longest, end - begin);
    return longest;
  }

 private:
  std::map<At, At> ranges_;  // begin -> end; no two meet
};

}  // namespace demarc
