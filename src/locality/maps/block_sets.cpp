// Keeps each set of blocks that touch places together once, and makes unions of sets.
#include "maps/block_sets.hpp"

#include <algorithm>

#include "demarc/base/hash.hpp"

namespace demarc::locality {
namespace {

// What BlockUnions keeps of unions before it starts anew, in intervals.
constexpr std::size_t max_held = std::size_t{1} << 22U;

}  // namespace

std::uint32_t BlockSets::intern(const std::vector<BlockWeight>& list) {
  std::uint64_t hash = list.size();
  for (const BlockWeight& entry : list) hash = hash_of(hash, entry.block, entry.weight);
  auto [it, fresh] = ids_.try_emplace(hash, size());
  // A different list with the same hash gets an entry of its own under the next free hash.
  while (!fresh && !std::equal(begin(it->second), end(it->second), list.begin(), list.end()))
    std::tie(it, fresh) = ids_.try_emplace(++hash, size());
  if (fresh) {
    begins_.push_back(entries_.size());
    entries_.insert(entries_.end(), list.begin(), list.end());
    places_.push_back(0);
  }
  return it->second;
}

BlockUnion::BlockUnion(std::vector<Interval> intervals) : intervals_(std::move(intervals)) {
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.first < b.first; });
  std::size_t out = 0;
  for (const Interval& one : intervals_) {
    if (out > 0 && one.first <= intervals_[out - 1].end)
      intervals_[out - 1].end = std::max(intervals_[out - 1].end, one.end);
    else
      intervals_[out++] = one;
  }
  intervals_.resize(out);
  std::uint64_t before = 0;
  for (Interval& one : intervals_) {
    one.before = before;
    before += one.end - one.first;
  }
}

std::uint64_t BlockUnion::size() const {
  if (intervals_.empty()) return 0;
  const Interval& last = intervals_.back();
  return last.before + last.end - last.first;
}

std::size_t BlockUnion::after(std::uint32_t block) const {
  const auto it = std::partition_point(
      intervals_.begin(), intervals_.end(),
      [block](const Interval& one) { return std::uint64_t{one.end} <= std::uint64_t{block} + 1; });
  return static_cast<std::size_t>(it - intervals_.begin());
}

std::uint64_t BlockUnion::later(std::uint32_t block) const {
  const std::size_t i = after(block);
  if (i == intervals_.size()) return 0;
  const Interval& one = intervals_[i];
  return size() - one.before - (one.first > block ? 0 : block + 1 - one.first);
}

BlockUnions::BlockUnions(const BlockSets& sets) {
  std::unordered_multimap<std::uint64_t, std::uint32_t> known;
  for (std::uint32_t set = 0; set < sets.size(); ++set) {
    std::vector<BlockUnion::Interval> intervals;
    for (const BlockWeight* it = sets.begin(set); it != sets.end(set); ++it) {
      if (!intervals.empty() && intervals.back().end == it->block)
        ++intervals.back().end;
      else
        intervals.push_back({it->block, it->block + 1, 0});
    }
    std::uint64_t hash = intervals.size();
    for (const BlockUnion::Interval& one : intervals) hash = hash_of(hash, one.first, one.end);
    const auto [from, to] = known.equal_range(hash);
    const auto same = std::find_if(from, to, [&](const auto& candidate) {
      const auto& other = lists_[candidate.second].intervals();
      return std::equal(
          other.begin(), other.end(), intervals.begin(), intervals.end(),
          [](const auto& a, const auto& b) { return a.first == b.first && a.end == b.end; });
    });
    if (same != to) {
      list_of_.push_back(same->second);
      continue;
    }
    const auto id = static_cast<std::uint32_t>(lists_.size());
    known.emplace(hash, id);
    list_of_.push_back(id);
    lists_.emplace_back(std::move(intervals));
  }
}

const BlockUnion& BlockUnions::of(std::vector<std::uint32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.size() == 1) return lists_[ids.front()];
  std::uint64_t hash = ids.size();
  for (const std::uint32_t id : ids) hash = hash_of(hash, id);
  const auto [from, to] = known_.equal_range(hash);
  for (auto it = from; it != to; ++it)
    if (it->second.ids == ids) return it->second.blocks;
  if (held_ > max_held) {
    known_.clear();
    held_ = 0;
  }
  std::vector<BlockUnion::Interval> all;
  for (const std::uint32_t id : ids)
    all.insert(all.end(), lists_[id].intervals().begin(), lists_[id].intervals().end());
  BlockUnion blocks(std::move(all));
  held_ += ids.size() + blocks.intervals().size();
  return known_.emplace(hash, Known{ids, std::move(blocks)})->second.blocks;
}

}  // namespace demarc::locality
