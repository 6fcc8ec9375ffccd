// A set-associative directory with true LRU: the tags of a TLB or a cache.
#pragma once

#include <cstdint>
#include <vector>

namespace demarc::sim::translation {

class LruSets {
 public:
  // `sets` is a power of two.
  LruSets(std::uint32_t sets, std::uint32_t ways)
      : ways_(ways),
        set_mask_(sets - 1),
        keys_(std::size_t{sets} * ways, empty),
        stamps_(keys_.size()) {}

  static constexpr std::size_t absent = ~std::size_t{0};

  // The slot of the key, which becomes the most recently used; or `absent`.
  std::size_t find(std::uint32_t key) {
    const std::size_t first = (key & set_mask_) * std::size_t{ways_};
    for (std::size_t i = first; i < first + ways_; ++i) {
      if (keys_[i] == key) {
        stamps_[i] = ++clock_;
        return i;
      }
    }
    return absent;
  }
  bool touch(std::uint32_t key) { return find(key) != absent; }

  // Replaces the least recently used key of the set; the slot.
  std::size_t insert(std::uint32_t key) {
    const std::size_t first = (key & set_mask_) * std::size_t{ways_};
    std::size_t victim = first;
    for (std::size_t i = first; i < first + ways_; ++i) {
      if (stamps_[i] < stamps_[victim]) victim = i;
    }
    keys_[victim] = key;
    stamps_[victim] = ++clock_;
    return victim;
  }

  void erase(std::uint32_t key) {
    const std::size_t slot = find(key);
    if (slot == absent) return;
    keys_[slot] = empty;
    stamps_[slot] = 0;
  }

  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  void clear() {
    keys_.assign(keys_.size(), empty);
    stamps_.assign(stamps_.size(), 0);
  }

 private:
  static constexpr std::uint32_t empty = ~std::uint32_t{0};
  std::uint32_t ways_;
  std::uint32_t set_mask_;
  std::vector<std::uint32_t> keys_;
  std::vector<std::uint64_t> stamps_;  // 0: never used
  std::uint64_t clock_ = 0;
};

}  // namespace demarc::sim::translation
