// Stores and loads a mask that may be replaced while launches read it.
#include "demarc/driver/shared_mask.hpp"

#include <mutex>

namespace demarc::cuda {

void SharedMask::store(const HardwareMask& mask, bool active) {
  static std::mutex writing;
  const std::scoped_lock lock(writing);
  const std::uint32_t next = published_.load(std::memory_order_relaxed) + 1;
  Slot& slot = slots_[next % 2];
  slot.active.store(active ? 1 : 0, std::memory_order_release);
  for (std::size_t i = 0; i < 4; ++i) {
    slot.words[i].store(mask.disabled[i], std::memory_order_release);
  }
  published_.store(next, std::memory_order_release);
}

bool SharedMask::load(HardwareMask& mask, std::uint32_t* number) const {
  while (true) {
    const std::uint32_t before = published_.load(std::memory_order_acquire);
    const Slot& slot = slots_[before % 2];
    const bool active = slot.active.load(std::memory_order_acquire) != 0;
    if (active) {
      for (std::size_t i = 0; i < 4; ++i) {
        mask.disabled[i] = slot.words[i].load(std::memory_order_acquire);
      }
    }
    // The slot is written again only after another mask was published.
    if (published_.load(std::memory_order_acquire) != before) continue;
    if (number != nullptr) *number = before;
    return active;
  }
}

}  // namespace demarc::cuda
