// The maps by plain enumeration: every access of every thread goes into a hash map of places. The
// definitions of the locality paper, word by word; the oracle of tests and the baseline of the
// benchmark.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
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
  for (const Run& run : runs.runs)
    for (std::uint32_t k = 0; k < run.count; ++k)
      touches.push_back({(run.address + static_cast<std::uint64_t>(run.stride) * k) / unit,
                         run.block, run.thread + k, run.access});
  return touches;
}

// `owner(touch)` is the row of the map, `member(touch)` tells its accesses apart within the row.
template <class Owner, class Member>
[[nodiscard]] LocalityMap map_of(const std::vector<Touch>& touches, std::uint32_t size, Count count,
                                 Owner owner, Member member) {
  std::unordered_map<std::uint64_t, std::map<std::uint32_t, std::uint64_t>> by_place;
  for (const Touch& touch : touches) ++by_place[touch.place][owner(touch)];
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> cells;
  if (count == Count::accesses) {
    // For every (owner, member): the later owners that touch one of its places.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::set<std::uint32_t>> sharers;
    for (const Touch& touch : touches)
      for (const auto& [other, times] : by_place[touch.place])
        if (other > owner(touch)) sharers[{owner(touch), member(touch)}].insert(other);
    for (const auto& [key, others] : sharers)
      for (const std::uint32_t other : others) ++cells[{key.first, other}];
  } else {
    for (const auto& [place, owners] : by_place)
      for (auto i = owners.begin(); i != owners.end(); ++i)
        for (auto j = std::next(i); j != owners.end(); ++j)
          cells[{i->first, j->first}] +=
              count == Count::distinct ? 1 : std::min(i->second, j->second);
  }
  LocalityMap map;
  map.size = size;
  for (const auto& [key, value] : cells) map.cells.push_back({key.first, key.second, value});
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
