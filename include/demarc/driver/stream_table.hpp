// Masks by stream, read inside every launch.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "demarc/driver/shared_mask.hpp"

namespace demarc::cuda {

// Streams are pointers here; what they point to is not looked at. Readers take no lock and do not
// wait; writers take turns.
class StreamTable {
 public:
  static constexpr std::size_t max_streams = 4096;

  // False when max_streams streams have a mask already.
  bool set(const void* stream, const HardwareMask& mask);
  // As if no mask had ever been set.
  void erase(const void* stream);
  // False when the stream has no mask.
  bool find(const void* stream, HardwareMask& mask) const {
    return used_.load(std::memory_order_acquire) != 0 && search(stream, mask);
  }
  [[nodiscard]] std::size_t size() const { return used_.load(); }

 private:
  struct Slot {
    std::atomic<const void*> stream{nullptr};  // stays when its mask goes: streams come again
    SharedMask mask;
  };
  static std::size_t first_slot(const void* stream);
  bool search(const void* stream, HardwareMask& mask) const;
  Slot* slot_of(const void* stream);
  void forget_streams();

  std::array<Slot, 2 * max_streams> slots_;
  std::atomic<std::size_t> used_{0};  // slots with a mask
  std::size_t known_ = 0;             // slots with a stream
  std::mutex writing_;
};

}  // namespace demarc::cuda
