// One TLB: entries of which any may translate any page, and the least recently used one goes first.
#pragma once

#include <vector>

#include "slots.hpp"

namespace demarc::sim::memory {

// What an entry translates: a client and a group of its pages (see Mmu).
using TlbKey = Index<struct TlbKeyTag, std::uint64_t>;

class Tlb {
 public:
  explicit Tlb(std::uint32_t entries);

  // Whether there is such an entry; it becomes the most recently used one.
  bool touch(TlbKey key);
  // Enters the key unless it is there.
  void enter(TlbKey key);

 private:
  using Slot = Index<struct TlbSlotTag>;
  struct Entry {
    TlbKey key;
    Slot older = none, newer = none;  // neighbours in the order of use
    Slot next = none;                 // in the list of its bucket
  };
  [[nodiscard]] Slot& bucket_of(TlbKey key);
  void unlink(Slot slot);
  void make_newest(Slot slot);
  void leave_bucket(Slot slot);

  PerIndex<Slot, Entry> entries_;  // those in use
  std::size_t max_entries_;
  std::vector<Slot> buckets_;
  Slot oldest_ = none, newest_ = none;
};

}  // namespace demarc::sim::memory
