// A canary: a small kernel that times reads of its own memory, again and again, while other kernels
// run. It takes one thread of one SM, so it disturbs them little.
#pragma once

#include "demarc/card/page_timer.hpp"

namespace demarc::cuda {

class CanaryWalk {
 public:
  static constexpr std::uint64_t bytes = 256U << 10U;

  // Makes a ring of all lines of `bytes` of memory, in a scattered order.
  static Result<CanaryWalk> create(const GpuPointer& gpu);

  // Goes around the ring twice, in one launch. The first walk brings lines back into the L2 that
  // other accesses have evicted, so the second one tells how long the L2 takes. check_failed if a
  // walk does not end where it began.
  [[nodiscard]] Result<WalkTimes> walk() const;

 private:
  CanaryWalk(Module module, Function walk, Stream stream, DeviceBuffer ring, DeviceBuffer result)
      : module_(std::move(module)),
        walk_(std::move(walk)),
        stream_(std::move(stream)),
        ring_(std::move(ring)),
        result_(std::move(result)) {}
  Module module_;
  Function walk_;
  Stream stream_;
  DeviceBuffer ring_;
  DeviceBuffer result_;
};

}  // namespace demarc::cuda
