// A set-associative directory with true LRU: the tags of a TLB or a cache.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/base/per_index.hpp"

namespace demarc::sim::translation {

// Where a directory holds a key: what is kept beside the keys is found by it.
using LruSlot = Index<struct LruSlotTag, std::size_t>;

// Key: an index of 32 bits, of which the last is never entered.
template <class Key>
class LruSets {
 public:
  // `sets` is a power of two.
  LruSets(std::uint32_t sets, std::uint32_t ways)
      : ways_(ways),
        set_mask_(sets - 1),
        keys_(std::size_t{sets} * ways, empty),
        stamps_(keys_.size()) {}

  static constexpr LruSlot absent{~std::size_t{0}};

  // The slot of the key, which becomes the most recently used; or `absent`.
  LruSlot find(Key key) {
    const std::size_t first = first_of(key);
    for (std::size_t i = first; i < first + ways_; ++i) {
      if (keys_[i] == key) {
        stamps_[i] = ++clock_;
        return LruSlot(i);
      }
    }
    return absent;
  }
  bool touch(Key key) { return find(key) != absent; }

  // Replaces the least recently used key of the set; the slot.
  LruSlot insert(Key key) {
    const std::size_t first = first_of(key);
    std::size_t victim = first;
    for (std::size_t i = first; i < first + ways_; ++i) {
      if (stamps_[i] < stamps_[victim]) victim = i;
    }
    keys_[victim] = key;
    stamps_[victim] = ++clock_;
    return LruSlot(victim);
  }

  void erase(Key key) {
    const LruSlot slot = find(key);
    if (slot == absent) return;
    keys_[slot.raw()] = empty;
    stamps_[slot.raw()] = 0;
  }

  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void clear() {
    keys_.assign(keys_.size(), empty);
    stamps_.assign(stamps_.size(), 0);
  }

 private:
  static constexpr Key empty{~std::uint32_t{0}};
  [[nodiscard]] std::size_t first_of(Key key) const {
    return (key.raw() & set_mask_) * std::size_t{ways_};
  }

  std::uint32_t ways_;
  std::uint32_t set_mask_;
  std::vector<Key> keys_;
  std::vector<std::uint64_t> stamps_;  // 0: never used
  std::uint64_t clock_ = 0;
};

}  // namespace demarc::sim::translation
