// Finds the entries of a TLB by their keys, and keeps them in the order of their use.
#include "tlb.hpp"

#include <bit>

#include "demarc/base/hash.hpp"

namespace demarc::sim::memory {

Tlb::Tlb(std::uint32_t entries)
    : max_entries_(entries), buckets_(std::bit_ceil(std::size_t{entries} * 2), Slot(none)) {}

Tlb::Slot& Tlb::bucket_of(TlbKey key) {
  return buckets_[stirred(key.raw()) & (buckets_.size() - 1)];
}

void Tlb::unlink(Slot slot) {
  const Entry& entry = entries_[slot];
  (entry.older == none ? oldest_ : entries_[entry.older].newer) = entry.newer;
  (entry.newer == none ? newest_ : entries_[entry.newer].older) = entry.older;
}

void Tlb::make_newest(Slot slot) {
  Entry& entry = entries_[slot];
  entry.older = newest_;
  entry.newer = none;
  (newest_ == none ? oldest_ : entries_[newest_].newer) = slot;
  newest_ = slot;
}

void Tlb::leave_bucket(Slot slot) {
  Slot* at = &bucket_of(entries_[slot].key);
  while (*at != slot) at = &entries_[*at].next;
  *at = entries_[slot].next;
}

bool Tlb::touch(TlbKey key) {
  if (newest_ != none && entries_[newest_].key == key) return true;
  Slot slot = bucket_of(key);
  while (slot != none && entries_[slot].key != key) slot = entries_[slot].next;
  if (slot == none) return false;
  unlink(slot);
  make_newest(slot);
  return true;
}

void Tlb::enter(TlbKey key) {
  if (touch(key)) return;
  Slot slot = oldest_;
  if (entries_.size() < max_entries_) {
    slot = entries_.next_key();
    entries_.emplace_back();
  } else {
    unlink(slot);
    leave_bucket(slot);
  }
  entries_[slot].key = key;
  Slot& bucket = bucket_of(key);
  entries_[slot].next = bucket;
  bucket = slot;
  make_newest(slot);
}

}  // namespace demarc::sim::memory
