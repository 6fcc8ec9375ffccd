// Chooses victims among the tags, and keeps their times of use.
#include "tag_array.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <bit>

namespace demarc::sim::memory {

template <class Cache>
void TagArray<Cache>::resize(std::uint32_t caches, std::uint32_t sets, std::uint32_t ways) {
  ways_ = ways;
  padded_ways_ = (ways + 3) / 4 * 4;
  way_bits_ = ways > 1 ? static_cast<std::uint32_t>(std::bit_width(ways - 1)) : 0;
  sets_ = sets;
  sets_all_ = caches * sets;
  constexpr std::uint32_t step = 8;  // half a line of the host's cache
  stride_ = round_up(padded_ways_ + ways, step);
  words_.assign(std::size_t{sets_all_} * stride_, None::raw);
  clocks_.assign(caches, 0);
}

template <class Cache>
typename TagArray<Cache>::Way TagArray<Cache>::victim(Set set) const {
  const std::uint32_t* const row = words_.data() + std::size_t{set.raw()} * stride_;
  // Ways are taken in order and never become empty again.
  if (row[ways_ - 1] == None::raw) {
    std::uint32_t way = 0;
    while (row[way] != None::raw) ++way;
    return index(set, way);
  }
  std::uint32_t best = None::raw;
  std::uint32_t oldest = None::raw;
  for (std::uint32_t way = 0; way < ways_; ++way) {
    const std::uint32_t of_way = row[padded_ways_ + way];
    const std::uint32_t time = (of_way & pending_bits) != 0 ? None::raw : of_way >> 16U;
    best = time < oldest ? way : best;
    oldest = time < oldest ? time : oldest;
  }
  return best == None::raw ? Way(none) : index(set, best);
}

template <class Cache>
void TagArray<Cache>::forget(Cache cache) {
  for (std::uint32_t set = cache.raw() * sets_; set < (cache.raw() + 1) * sets_; ++set) {
    std::uint32_t* const row = words_.data() + std::size_t{set} * stride_ + padded_ways_;
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if ((row[way] & pending_bits) == 0) row[way] &= ~15U;
    }
  }
}

template <class Cache>
void TagArray<Cache>::renumber(Cache cache) {
  std::vector<std::uint32_t*> ages;
  for (std::uint32_t set = cache.raw() * sets_; set < (cache.raw() + 1) * sets_; ++set) {
    std::uint32_t* const row = words_.data() + std::size_t{set} * stride_;
    ages.clear();
    for (std::uint32_t way = 0; way < ways_; ++way) {
      if (row[way] != None::raw) ages.push_back(row + padded_ways_ + way);
    }
    std::sort(ages.begin(), ages.end(),
              [](const auto* a, const auto* b) { return *a >> 16U < *b >> 16U; });
    std::uint32_t rank = 0;
    for (std::uint32_t* const age : ages) *age = (*age & 0xffffU) | (++rank << 16U);
  }
  clocks_[cache] = ways_;
}

template class TagArray<SmIndex>;
template class TagArray<SliceIndex>;

}  // namespace demarc::sim::memory
