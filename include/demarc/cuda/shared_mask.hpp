// A mask in memory that several threads or processes share.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "demarc/cuda/descriptor.hpp"

namespace demarc::cuda {

// A mask that other threads, or other processes through shared memory, may replace while launches
// read it. Plain data: lives in shared memory as it is. A reader that meets a write in progress
// tries again.
class SharedMask {
 public:
  void store(const HardwareMask& mask, bool active);
  // False when no mask is active.
  bool load(HardwareMask& mask) const;

 private:
  std::atomic<std::uint32_t> version_{0};  // odd while being written
  std::atomic<std::uint32_t> active_{0};
  std::array<std::atomic<std::uint32_t>, 4> words_{};
};

}  // namespace demarc::cuda
