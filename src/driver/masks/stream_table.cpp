// Keeps a mask for each stream in a table that launches read without a lock.
#include "demarc/driver/stream_table.hpp"

#include "demarc/base/hash.hpp"

namespace demarc::cuda {
namespace {

constexpr std::size_t many_streams = 64;  // worth forgetting when none has a mask any more

}  // namespace

std::size_t StreamTable::first_slot(const void* stream) {
  return hash_of(reinterpret_cast<std::uintptr_t>(stream)) % (2 * max_streams);
}

bool StreamTable::search(const void* stream, HardwareMask& mask) const {
  for (std::size_t step = 0; step < slots_.size(); ++step) {
    const Slot& slot = slots_[(first_slot(stream) + step) % slots_.size()];
    const void* owner = slot.stream.load(std::memory_order_acquire);
    if (owner == nullptr) return false;
    if (owner != stream) continue;
    const bool found = slot.mask.load(mask);
    // A slot that changed hands meanwhile held no mask of this stream.
    if (slot.stream.load(std::memory_order_acquire) == stream) return found;
  }
  return false;
}

StreamTable::Slot* StreamTable::slot_of(const void* stream) {
  for (std::size_t step = 0; step < slots_.size(); ++step) {
    Slot& slot = slots_[(first_slot(stream) + step) % slots_.size()];
    const void* owner = slot.stream.load(std::memory_order_relaxed);
    if (owner == stream) return &slot;
    if (owner == nullptr) return nullptr;
  }
  return nullptr;
}

bool StreamTable::set(const void* stream, const HardwareMask& mask) {
  const std::scoped_lock lock(writing_);
  HardwareMask ignored;
  Slot* slot = slot_of(stream);
  const bool had = slot != nullptr && slot->mask.load(ignored);
  if (!had && used_.load(std::memory_order_relaxed) == max_streams) return false;
  // The first slot on the way without a mask: empty, or left by a stream that lost its own.
  for (std::size_t step = 0; slot == nullptr && step < slots_.size(); ++step) {
    Slot& candidate = slots_[(first_slot(stream) + step) % slots_.size()];
    if (candidate.stream.load(std::memory_order_relaxed) == nullptr ||
        !candidate.mask.load(ignored)) {
      if (candidate.stream.load(std::memory_order_relaxed) == nullptr) ++known_;
      candidate.stream.store(stream, std::memory_order_release);
      slot = &candidate;
    }
  }
  if (slot == nullptr) return false;
  slot->mask.store(mask, true);
  if (!had) used_.fetch_add(1, std::memory_order_release);
  return true;
}

void StreamTable::erase(const void* stream) {
  if (used_.load(std::memory_order_acquire) == 0) return;
  const std::scoped_lock lock(writing_);
  HardwareMask ignored;
  Slot* slot = slot_of(stream);
  if (slot == nullptr || !slot->mask.load(ignored)) return;
  slot->mask.store(HardwareMask{}, false);
  if (used_.fetch_sub(1, std::memory_order_release) == 1 && known_ > many_streams) forget_streams();
}

void StreamTable::forget_streams() {
  for (Slot& slot : slots_) slot.stream.store(nullptr, std::memory_order_relaxed);
  known_ = 0;
}

}  // namespace demarc::cuda
