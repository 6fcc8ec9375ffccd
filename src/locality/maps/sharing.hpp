// Which blocks touch which places: the sets of blocks of all cells, and where the cells are.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "maps/block_sets.hpp"
#include "maps/boxes.hpp"

namespace demarc::locality {

// Cells of the sweep that two blocks or more touch: by digits of each level.
class SharedCells {
 public:
  // Digits lo .. end - 1: of the lowest level touched by the blocks of `inside`, of upper levels
  // with the entries inside .. inside_end - 1 of the level below.
  struct Entry {
    std::uint64_t lo = 0;
    std::uint64_t end = 0;
    std::uint32_t inside = 0;
    std::uint32_t inside_end = 0;
  };
  std::array<std::vector<Entry>, max_levels> levels;

  // Calls f(set, lo, end) with the set of blocks of each part of the box, and the digits of the
  // part on the box's level of threads.
  template <class F>
  void for_each_part(const Box& box, std::size_t level, std::uint32_t first, std::uint32_t last,
                     std::uint64_t lo, std::uint64_t end, F&& f) const {
    const auto begin = levels[level].begin();
    auto entry =
        std::upper_bound(begin + first, begin + last, box.lo[level],
                         [](std::uint64_t digit, const Entry& one) { return digit < one.end; });
    for (; entry != begin + last && entry->lo < box.hi[level]; ++entry) {
      std::uint64_t from = lo;
      std::uint64_t to = end;
      if (box.thread_level == level) {
        from = std::max(entry->lo, box.lo[level]);
        to = std::min(entry->end, box.hi[level]);
      }
      if (level == 0)
        f(entry->inside, from, to);
      else
        for_each_part(box, level - 1, entry->inside, entry->inside_end, from, to, f);
    }
  }
};

// The sets of blocks at all places.
class Sharing {
 public:
  // Keeps references. `keep_cells`: for for_each_set.
  Sharing(const AccessRuns& runs, BoxMaker& maker, bool keep_cells);

  // All runs; `weightless`: accesses whose boxes have weight 0.
  void add_all(const std::vector<bool>& weightless);

  // Calls f(set, begin, end): the positions begin .. end - 1 of the run touch places of the set.
  template <class F>
  void for_each_set(const Box& box, F&& f) const {
    const std::size_t cluster = maker_.cluster_of(box.access);
    const SharedCells::Entry& range = clusters_[cluster];
    cells_.for_each_part(box, maker_.levels(cluster) - 1, range.inside, range.inside_end, 0, 1,
                         [&](std::uint32_t set, std::uint64_t lo, std::uint64_t end) {
                           const std::uint64_t from =
                               box.thread_level == Box::no_level ? 0 : box.lo[box.thread_level];
                           f(set, box.first + static_cast<std::uint32_t>(lo - from) * box.width,
                             static_cast<std::uint32_t>(end - lo) * box.width);
                         });
  }

  // What BoxSweep calls.
  void enter(std::size_t level, std::uint64_t lo, std::uint64_t end);
  void leave(std::size_t level, std::uint64_t lo, std::uint64_t end);
  template <class B>
  void cell(std::uint64_t lo, std::uint64_t end, std::uint64_t count,
            const std::vector<const B*>& boxes);

  BlockSets sets;
  std::uint64_t places = 0;
  std::uint64_t shared_places = 0;
  // By access, over the places of each block: how many, and how many blocks touch them.
  std::vector<double> touched;
  std::vector<double> reached;

 private:
  template <class B>
  void add_cluster(std::size_t cluster, const std::vector<bool>& weightless);
  [[nodiscard]] std::uint32_t size_of(std::size_t level) const {
    return static_cast<std::uint32_t>(cells_.levels[level].size());
  }

  static constexpr std::uint32_t nobody = 0xffffffffU;

  std::vector<std::uint32_t> last_owner_;  // by access
  const AccessRuns& runs_;
  BoxMaker& maker_;
  bool keep_cells_;
  SharedCells cells_;
  std::array<SharedCells::Entry, max_levels> open_;
  std::vector<SharedCells::Entry> clusters_;  // their entries of the top level
  std::vector<BlockWeight> list_;
};

}  // namespace demarc::locality
