// Where a lane's data lies: plain device memory, or memory of one colour.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "demarc/card/colored_program.hpp"
#include "demarc/driver/memory.hpp"

namespace demarc::study {

// One buffer. `address` is what a kernel of this lane gets as its pointer.
class PlacedBuffer {
 public:
  virtual ~PlacedBuffer() = default;
  [[nodiscard]] virtual std::uint64_t address() const = 0;
  [[nodiscard]] virtual Result<void> upload(const void* source, std::size_t bytes) = 0;
  [[nodiscard]] virtual Result<void> download(void* target, std::size_t bytes) = 0;
};

// A module on the GPU and the memory that it brings.
class LoadedProgram {
 public:
  virtual ~LoadedProgram() = default;
  [[nodiscard]] virtual const cuda::Module& module() const = 0;
};

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // missing_capability when there is no room.
  [[nodiscard]] virtual Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) = 0;
  // Loads a module so that the kernels of `uses` work on this memory. missing_capability where the
  // memory cannot hold what they keep beside their buffers.
  [[nodiscard]] virtual Result<std::unique_ptr<LoadedProgram>> load(
      const ptx::Module& module, std::span<const cuda::KernelUse> uses) const = 0;
  // It is of one colour, and so is all that its kernels use.
  [[nodiscard]] virtual bool colored() const { return false; }
  [[nodiscard]] virtual std::string account() const = 0;  // "colour 0 of 2, chunks of 16 KiB"
};

// cuMemAlloc; kernels stay as they are.
[[nodiscard]] std::shared_ptr<MemorySource> make_plain_memory(cuda::GpuPointer gpu);

// Host memory that the GPU maps; kernels stay as they are. `buffers_alone`: kernels that use
// memory of the card beside their buffers are refused.
[[nodiscard]] std::shared_ptr<MemorySource> make_host_memory(const cuda::GpuPointer& gpu,
                                                             bool buffers_alone);

}  // namespace demarc::study
