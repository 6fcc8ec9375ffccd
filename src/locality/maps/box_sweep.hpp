// A sweep over the places of one cluster, level by level of its grid: between two neighbouring ends
// of boxes the boxes that hold a place are the same.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "maps/boxes.hpp"

namespace demarc::locality {

// A visitor has
//   enter(level, lo, end), leave(level, lo, end): around the cells of digits lo .. end - 1 of an
//     upper level;
//   cell(lo, end, places, boxes): digits of the lowest level that the same boxes hold, sorted by
//     owner, and how many places these are, with the digits of the levels above.
// `B` is Box, or something smaller with its lo, hi and owner.
template <class Visitor, class B = Box>
class BoxSweep {
 public:
  explicit BoxSweep(Visitor& visitor) : visitor_(visitor) {}

  void run(const std::vector<B>& boxes, std::size_t levels) {
    std::vector<const B*>& top = boxes_[levels - 1];
    top.clear();
    for (const B& box : boxes) top.push_back(&box);
    sweep(levels - 1, 1);
  }

 private:
  // Those in boxes_[level]; `places`: of one digit.
  void sweep(std::size_t level, std::uint64_t places) {
    std::vector<const B*>& boxes = boxes_[level];
    std::vector<const B*>& active = active_[level];
    std::sort(boxes.begin(), boxes.end(), [level](const B* a, const B* b) {
      return a->lo[level] != b->lo[level] ? a->lo[level] < b->lo[level] : a->owner < b->owner;
    });
    active.clear();
    std::size_t next = 0;
    std::uint64_t at = 0;
    while (next < boxes.size() || !active.empty()) {
      if (active.empty()) at = boxes[next]->lo[level];
      while (next < boxes.size() && boxes[next]->lo[level] == at) insert(level, boxes[next++]);
      std::uint64_t end = next < boxes.size() ? boxes[next]->lo[level] : ~std::uint64_t{0};
      for (const B* box : active) end = std::min(end, box->hi[level]);
      if (level == 0) {
        visitor_.cell(at, end, (end - at) * places, active);
      } else {
        visitor_.enter(level, at, end);
        boxes_[level - 1] = active;
        sweep(level - 1, (end - at) * places);
        visitor_.leave(level, at, end);
      }
      std::erase_if(active, [level, end](const B* box) { return box->hi[level] == end; });
      at = end;
    }
  }

  void insert(std::size_t level, const B* box) {
    std::vector<const B*>& active = active_[level];
    const auto by_owner = [](const B* a, const B* b) { return a->owner < b->owner; };
    active.insert(
        level > 0 ? active.end() : std::upper_bound(active.begin(), active.end(), box, by_owner),
        box);
  }

  Visitor& visitor_;
  std::array<std::vector<const B*>, max_levels> boxes_;
  std::array<std::vector<const B*>, max_levels> active_;
};

}  // namespace demarc::locality
