// Where a lane's data lies: plain device memory, or memory of one colour.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "demarc/cuda/memory.hpp"

namespace demarc::study {

// One buffer. `address` is what a kernel of this lane gets as its pointer.
class PlacedBuffer {
 public:
  virtual ~PlacedBuffer() = default;
  [[nodiscard]] virtual std::uint64_t address() const = 0;
  [[nodiscard]] virtual Result<void> upload(const void* source, std::size_t bytes) = 0;
  [[nodiscard]] virtual Result<void> download(void* target, std::size_t bytes) = 0;
};

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // missing_capability when there is no room.
  [[nodiscard]] virtual Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) = 0;
  // The PTX text whose kernels work on this memory, made from an ordinary one.
  [[nodiscard]] virtual Result<std::string> adapt(const std::string& ptx,
                                                  const std::string& source_name) const = 0;
  [[nodiscard]] virtual std::string account() const = 0;  // "colour 0 of 2, chunks of 16 KiB"
};

// cuMemAlloc; kernels stay as they are.
[[nodiscard]] std::shared_ptr<MemorySource> make_plain_memory(cuda::GpuPointer gpu);

}  // namespace demarc::study
