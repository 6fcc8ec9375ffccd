// Objects that come and go, named by the slots they take; the slot given back last is taken first.
#pragma once

#include <vector>

#include "demarc/base/per_index.hpp"

namespace demarc::sim::translation {

template <class Slot, class T>
class SlotPool {
 public:
  // What the object holds is what the last one left.
  [[nodiscard]] Slot take() {
    if (!free_.empty()) {
      const Slot slot = free_.back();
      free_.pop_back();
      return slot;
    }
    objects_.emplace_back();
    return Slot(objects_.size() - 1);
  }
  void give_back(Slot slot) { free_.push_back(slot); }
  [[gnu::always_inline]] T& operator[](Slot slot) { return objects_[slot]; }
  [[gnu::always_inline]] const T& operator[](Slot slot) const { return objects_[slot]; }
  [[nodiscard]] std::size_t taken() const { return objects_.size() - free_.size(); }
  // For all that were ever taken.
  [[nodiscard]] auto begin() const { return objects_.begin(); }
  [[nodiscard]] auto end() const { return objects_.end(); }

 private:
  PerIndex<Slot, T> objects_;
  std::vector<Slot> free_;
};

}  // namespace demarc::sim::translation
