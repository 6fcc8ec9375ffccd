// Gives out free ranges and takes them back.
#include "demarc/base/free_ranges.hpp"

#include <algorithm>
#include <iterator>

namespace demarc {

void FreeRanges::put(std::uint64_t begin, std::uint64_t end) {
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

std::optional<std::uint64_t> FreeRanges::take(std::uint64_t count, std::uint64_t from) {
  const auto room = std::find_if(ranges_.begin(), ranges_.end(), [&](const auto& range) {
    const std::uint64_t first = std::max(range.first, from);
    return first < range.second && range.second - first >= count;
  });
  if (room == ranges_.end()) return std::nullopt;
  const auto [begin, end] = *room;
  const std::uint64_t first = std::max(begin, from);
  ranges_.erase(room);
  put(begin, first);
  put(first + count, end);
  return first;
}

std::uint64_t FreeRanges::longest() const {
  std::uint64_t longest = 0;
  for (const auto& [begin, end] : ranges_) longest = std::max(longest, end - begin);
  return longest;
}

}  // namespace demarc
