// Sets of blocks that touch a place together. Many places have the same set: each is kept once,
// and what is drawn from it costs its size, not its pairs.
#pragma once

#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace demarc::locality {

struct BlockWeight {
  std::uint32_t block = 0;
  std::uint64_t weight = 0;
  friend bool operator==(const BlockWeight&, const BlockWeight&) = default;
};

// Lists of blocks, ascending, with their weights, and the number of places each holds for.
class BlockSets {
 public:
  [[nodiscard]] std::uint32_t intern(const std::vector<BlockWeight>& list);
  void add_places(std::uint32_t id, std::uint64_t count) { places_[id] += count; }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(begins_.size()); }
  [[nodiscard]] std::uint64_t places(std::uint32_t id) const { return places_[id]; }
  [[nodiscard]] const BlockWeight* begin(std::uint32_t id) const {
    return entries_.data() + begins_[id];
  }
  [[nodiscard]] const BlockWeight* end(std::uint32_t id) const {
    return entries_.data() + (id + 1 < begins_.size() ? begins_[id + 1] : entries_.size());
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<BlockWeight> entries_;
  std::vector<std::uint64_t> places_;
  std::unordered_map<std::uint64_t, std::uint32_t> ids_;
};

// Blocks as intervals of consecutive numbers, ascending.
class BlockUnion {
 public:
  struct Interval {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::uint64_t before = 0;  // blocks in the intervals before it
  };
  // In any order, overlapping.
  explicit BlockUnion(std::vector<Interval> intervals);

  [[nodiscard]] const std::vector<Interval>& intervals() const { return intervals_; }
  [[nodiscard]] std::uint64_t size() const;
  // How many of the blocks have a higher number.
  [[nodiscard]] std::uint64_t later(std::uint32_t block) const;
  // Calls f(first, end) for the consecutive blocks with a higher number.
  template <class F>
  void for_each_later(std::uint32_t block, F&& f) const {
    for (std::size_t i = after(block); i < intervals_.size(); ++i)
      f(intervals_[i].first > block ? intervals_[i].first : block + 1, intervals_[i].end);
  }

 private:
  // The first interval that reaches beyond the block.
  [[nodiscard]] std::size_t after(std::uint32_t block) const;
  std::vector<Interval> intervals_;
};

// The members of the sets, without weights, and unions of them.
class BlockUnions {
 public:
  explicit BlockUnions(const BlockSets& sets);

  [[nodiscard]] std::uint32_t list_of(std::uint32_t set) const { return list_of_[set]; }
  [[nodiscard]] const std::vector<BlockUnion>& lists() const { return lists_; }
  // For the lists `ids`, which are sorted and made unique here; valid until the next call.
  [[nodiscard]] const BlockUnion& of(std::vector<std::uint32_t>& ids);

 private:
  std::vector<std::uint32_t> list_of_;  // by set
  std::vector<BlockUnion> lists_;
  struct Known {
    std::vector<std::uint32_t> ids;
    BlockUnion blocks;
  };
  std::unordered_multimap<std::uint64_t, Known> known_;
  std::size_t held_ = 0;  // intervals and ids in known_
};

}  // namespace demarc::locality
