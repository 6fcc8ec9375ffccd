// A mask in memory that several threads or processes share.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "demarc/driver/descriptor.hpp"

namespace demarc::cuda {

// A mask that other threads, or other processes through shared memory, may replace while launches
// read it. Plain data: lives in shared memory as it is. A new mask is written beside the old one
// and then published by one store, so a writer that dies in the middle leaves the old mask and
// room for the next writer. Readers never wait: they try again only when a whole mask was
// published while they read.
class SharedMask {
 public:
  // Threads of one process take turns here. Processes must take turns by themselves, as
  // Control::store_mask() does.
  void store(const HardwareMask& mask, bool active);
  // False when no mask is active. `number`, if there is one, becomes that of the mask.
  bool load(HardwareMask& mask, std::uint32_t* number = nullptr) const;
  // Masks so far: the number of the last one.
  [[nodiscard]] std::uint32_t published() const { return published_.load(); }

 private:
  struct Slot {
    std::atomic<std::uint32_t> active{0};
    std::array<std::atomic<std::uint32_t>, 4> words{};
  };
  std::atomic<std::uint32_t> published_{0};  // masks so far; the last one lies in slot % 2
  std::array<Slot, 2> slots_{};
};

}  // namespace demarc::cuda
