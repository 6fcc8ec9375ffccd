#include "demarc/cuda/shared_mask.hpp"

namespace demarc::cuda {

void SharedMask::store(const HardwareMask& mask, bool active) {
  // One writer at a time: the odd version is taken by compare-and-swap.
  std::uint32_t version = version_.load(std::memory_order_relaxed);
  do {
    version &= ~std::uint32_t{1};
  } while (!version_.compare_exchange_weak(version, version + 1, std::memory_order_acq_rel));
  active_.store(active ? 1 : 0, std::memory_order_release);
  for (std::size_t i = 0; i < 4; ++i) words_[i].store(mask.disabled[i], std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

bool SharedMask::load(HardwareMask& mask) const {
  while (true) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    const bool active = active_.load(std::memory_order_acquire) != 0;
    if (active) {
      for (std::size_t i = 0; i < 4; ++i) {
        mask.disabled[i] = words_[i].load(std::memory_order_acquire);
      }
    }
    if ((before & 1U) == 0 && version_.load(std::memory_order_acquire) == before) return active;
  }
}

}  // namespace demarc::cuda
