// Buffers in memory of the host, which kernels reach over the bus.
#include <algorithm>

#include "gpu/memory_source.hpp"

namespace demarc::study {
namespace {

class HostPlace : public PlacedBuffer {
 public:
  explicit HostPlace(cuda::HostBuffer buffer) : buffer_(std::move(buffer)) {}
  std::uint64_t address() const override { return buffer_.address(); }
  Result<void> upload(const void* source, std::size_t bytes) override {
    std::copy_n(static_cast<const std::byte*>(source), bytes, buffer_.bytes().begin());
    return {};
  }
  Result<void> download(void* target, std::size_t bytes) override {
    std::copy_n(buffer_.bytes().begin(), bytes, static_cast<std::byte*>(target));
    return {};
  }

 private:
  cuda::HostBuffer buffer_;
};

// Kernels stay as they are, whatever colours their lane has: of the card's memory they use none.
class HostMemory : public MemorySource {
 public:
  explicit HostMemory(const cuda::GpuPointer& gpu) : gpu_(gpu), plain_(make_plain_memory(gpu)) {}
  Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) override {
    DEMARC_TRY(auto buffer, cuda::HostBuffer::allocate(gpu_, bytes));
    return std::make_unique<HostPlace>(std::move(buffer));
  }
  Result<std::unique_ptr<LoadedProgram>> load(
      const ptx::Module& module, std::span<const cuda::KernelUse> uses) const override {
    return plain_->load(module, uses);
  }
  std::string account() const override { return "memory of the host"; }

 private:
  cuda::GpuPointer gpu_;
  std::shared_ptr<MemorySource> plain_;
};

}  // namespace

std::shared_ptr<MemorySource> make_host_memory(const cuda::GpuPointer& gpu) {
  return std::make_shared<HostMemory>(gpu);
}

}  // namespace demarc::study
