// Buffers in memory of the card that is not divided.
#include "gpu/memory_source.hpp"

namespace demarc::study {
namespace {

class PlainBuffer : public PlacedBuffer {
 public:
  explicit PlainBuffer(cuda::DeviceBuffer buffer) : buffer_(std::move(buffer)) {}
  std::uint64_t address() const override { return buffer_.address(); }
  Result<void> upload(const void* source, std::size_t bytes) override {
    return buffer_.upload(source, bytes);
  }
  Result<void> download(void* target, std::size_t bytes) override {
    return buffer_.download(target, bytes);
  }

 private:
  cuda::DeviceBuffer buffer_;
};

class PlainProgram : public LoadedProgram {
 public:
  explicit PlainProgram(cuda::Module module) : module_(std::move(module)) {}
  const cuda::Module& module() const override { return module_; }

 private:
  cuda::Module module_;
};

class PlainMemory : public MemorySource {
 public:
  explicit PlainMemory(cuda::GpuPointer gpu) : gpu_(std::move(gpu)) {}
  Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) override {
    DEMARC_TRY(auto buffer, cuda::DeviceBuffer::allocate(gpu_, bytes));
    return std::make_unique<PlainBuffer>(std::move(buffer));
  }
  Result<std::unique_ptr<LoadedProgram>> load(const ptx::Module& module,
                                              std::span<const cuda::KernelUse>) const override {
    DEMARC_TRY(auto loaded, cuda::Module::load(gpu_, *module.text, module.source_name));
    return std::make_unique<PlainProgram>(std::move(loaded));
  }
  std::string account() const override { return "memory not divided"; }

 private:
  cuda::GpuPointer gpu_;
};

}  // namespace

std::shared_ptr<MemorySource> make_plain_memory(cuda::GpuPointer gpu) {
  return std::make_shared<PlainMemory>(std::move(gpu));
}

}  // namespace demarc::study
