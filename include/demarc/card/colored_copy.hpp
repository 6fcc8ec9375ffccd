// Copies between the host and coloured memory whose runs are too short for copies of the driver.
// They go through plain memory on the card and a kernel.
#pragma once

#include "demarc/card/colored.cuh"
#include "demarc/driver/launch.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::cuda {

class ColoredCopier {
 public:
  static Result<ColoredCopier> create(GpuPointer gpu);

  // `bytes` bytes from place.address(0) on. Both wait until they are done.
  [[nodiscard]] Result<void> upload(const colored_layout<remainders>& place, const void* source,
                                    std::uint64_t bytes) const;
  [[nodiscard]] Result<void> download(const colored_layout<remainders>& place, void* target,
                                      std::uint64_t bytes) const;

 private:
  ColoredCopier(Module module, Function copy, Stream stream)
      : module_(std::move(module)), copy_(std::move(copy)), stream_(std::move(stream)) {}
  [[nodiscard]] Result<void> run(const colored_layout<remainders>& place, DevicePointer plain,
                                 std::uint64_t bytes, bool to_colored) const;
  Module module_;
  Function copy_;
  Stream stream_;
};

}  // namespace demarc::cuda
