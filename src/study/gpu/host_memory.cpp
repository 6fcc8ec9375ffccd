// Buffers in host memory, which kernels reach over the bus.
#include <algorithm>

#include "demarc/ptx/colored.hpp"
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

// Kernels stay as they are. Where a lane's memory has colours, those that use memory of the card
// beside their buffers are refused: it would have none.
class HostMemory : public MemorySource {
 public:
  HostMemory(const cuda::GpuPointer& gpu, bool buffers_alone)
      : gpu_(gpu), plain_(make_plain_memory(gpu)), buffers_alone_(buffers_alone) {}
  Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) override {
    DEMARC_TRY(auto buffer, cuda::HostBuffer::allocate(gpu_, bytes));
    return std::make_unique<HostPlace>(std::move(buffer));
  }
  Result<std::unique_ptr<LoadedProgram>> load(
      const ptx::Module& module, std::span<const cuda::KernelUse> uses) const override {
    if (buffers_alone_) DEMARC_CHECK(check_buffers_alone(module, uses));
    DEMARC_TRY(auto program, plain_->load(module, uses));
    for (const cuda::KernelUse& use : uses) {
      if (!buffers_alone_) break;
      DEMARC_TRY(const auto function, program->module().function(use.kernel));
      DEMARC_TRY(const int bytes, function.attribute(cuda::function_local_bytes));
      if (bytes != 0) {
        return missing_capability(
            "{}: kernel '{}' keeps {} bytes per thread in local memory, which has no colour",
            module.source_name, use.kernel, bytes);
      }
    }
    return program;
  }
  bool colored() const override { return buffers_alone_; }
  std::string account() const override { return "host memory"; }

 private:
  static Result<void> check_buffers_alone(const ptx::Module& module,
                                          std::span<const cuda::KernelUse> uses) {
    ptx::ColoredOptions options;
    for (const cuda::KernelUse& use : uses) options.kernels.push_back(use.kernel);
    DEMARC_TRY(const auto needs, ptx::find_colored_needs(module, options));
    if (needs.variables.bytes == 0 && needs.local_bytes == 0) return {};
    return missing_capability(
        "{}: its kernels use {} bytes of variables and {} bytes of local memory per thread, which "
        "would have no colour",
        module.source_name, needs.variables.bytes, needs.local_bytes);
  }

  cuda::GpuPointer gpu_;
  std::shared_ptr<MemorySource> plain_;
  bool buffers_alone_;
};

}  // namespace

std::shared_ptr<MemorySource> make_host_memory(const cuda::GpuPointer& gpu, bool buffers_alone) {
  return std::make_shared<HostMemory>(gpu, buffers_alone);
}

}  // namespace demarc::study
