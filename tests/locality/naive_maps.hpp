// The maps by plain enumeration: every access of every thread goes into a hash map of addresses,
// which holds who touched it and how often. The definitions of the locality paper, word by word;
// the oracle of tests and the baseline of the benchmark.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "demarc/locality/maps.hpp"

namespace demarc::locality::naive {

struct Touch {
  std::uint64_t place = 0;
  std::uint32_t block = 0;
  std::uint32_t thread = 0;
  std::uint32_t access = 0;
};

[[nodiscard]] inline std::vector<Touch> touches_of(const AccessRuns& runs,
                                                   Granularity granularity) {
  const std::uint64_t unit =
      granularity == Granularity::element ? 1 : static_cast<std::uint64_t>(granularity);
  std::vector<Touch> touches;
  for (const Run& run : expanded(runs).runs)
    for (std::uint32_t k = 0; k < run.count; ++k)
      touches.push_back({(run.address + static_cast<std::uint64_t>(run.stride) * k) / unit,
                         run.block, run.thread + k, run.access});
  return touches;
}

// A place's owners, ascending, with the times each touched it.
struct Owners {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> times;
};

// `owner(touch)` is the row of the map, `member(touch)` tells its accesses apart within the row;
// touches come with owners ascending.
template <class Owner, class Member>
[[nodiscard]] LocalityMap map_of(std::vector<Touch> touches, std::uint32_t size, Count count,
                                 Owner owner, Member member) {
  std::stable_sort(touches.begin(), touches.end(), [&](const Touch& a, const Touch& b) {
    return owner(a) != owner(b) ? owner(a) < owner(b) : member(a) < member(b);
  });
  std::unordered_map<std::uint64_t, Owners> by_place;
  by_place.reserve(touches.size());
  for (const Touch& touch : touches) {
    auto& times = by_place[touch.place].times;
    if (times.empty() || times.back().first != owner(touch)) times.emplace_back(owner(touch), 0);
    ++times.back().second;
  }
  std::unordered_map<std::uint64_t, std::uint64_t> cells;  // row << 32 | column
  const auto cell = [&cells](std::uint32_t row, std::uint32_t column) -> std::uint64_t& {
    return cells[std::uint64_t{row} << 32U | column];
  };
  if (count == Count::accesses) {
    // Touches of one member stand together: the later owners that touch one of its places.
    std::vector<std::uint32_t> others;
    for (std::size_t i = 0; i < touches.size(); ++i) {
      for (const auto& [other, times] : by_place[touches[i].place].times)
        if (other > owner(touches[i])) others.push_back(other);
      if (i + 1 < touches.size() && owner(touches[i + 1]) == owner(touches[i]) &&
          member(touches[i + 1]) == member(touches[i]))
        continue;
      std::sort(others.begin(), others.end());
      others.erase(std::unique(others.begin(), others.end()), others.end());
      for (const std::uint32_t other : others) ++cell(owner(touches[i]), other);
      others.clear();
    }
  } else {
    for (const auto& [place, owners] : by_place)
      for (auto i = owners.times.begin(); i != owners.times.end(); ++i)
        for (auto j = std::next(i); j != owners.times.end(); ++j)
          cell(i->first, j->first) += count == Count::distinct ? 1 : std::min(i->second, j->second);
  }
  LocalityMap map;
  map.size = size;
  for (const auto& [key, value] : cells)
    map.cells.push_back({static_cast<std::uint32_t>(key >> 32U),
                         static_cast<std::uint32_t>(key & 0xffffffffU), value});
  std::sort(map.cells.begin(), map.cells.end(), [](const MapCell& a, const MapCell& b) {
    return a.row != b.row ? a.row < b.row : a.column < b.column;
  });
  return map;
}

[[nodiscard]] inline LocalityMap inter(const AccessRuns& runs, Granularity granularity,
                                       Count count) {
  return map_of(
      touches_of(runs, granularity), runs.blocks(), count, [](const Touch& t) { return t.block; },
      [](const Touch& t) { return (std::uint64_t{t.thread} << 32U) | t.access; });
}

[[nodiscard]] inline LocalityMap intra(const AccessRuns& runs, std::uint32_t block,
                                       Granularity granularity, Count count) {
  std::vector<Touch> touches = touches_of(runs, granularity);
  std::erase_if(touches, [block](const Touch& t) { return t.block != block; });
  return map_of(
      touches, runs.threads(), count, [](const Touch& t) { return t.thread; },
      [](const Touch& t) { return std::uint64_t{t.access}; });
}

}  // namespace demarc::locality::naive
