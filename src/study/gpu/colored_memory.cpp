// Keeps buffers and kernels in one share of a coloured pool.
#include "gpu/colored_memory.hpp"

#include "demarc/card/code_of_pool.hpp"

namespace demarc::study {
namespace {

class ColoredPlace : public PlacedBuffer {
 public:
  ColoredPlace(cuda::ColoredBuffer buffer, std::uint64_t address)
      : buffer_(std::move(buffer)), address_(address) {}
  std::uint64_t address() const override { return address_; }
  Result<void> upload(const void* source, std::size_t bytes) override {
    return buffer_.upload(source, bytes);
  }
  Result<void> download(void* target, std::size_t bytes) override {
    return buffer_.download(target, bytes);
  }

 private:
  cuda::ColoredBuffer buffer_;
  std::uint64_t address_;
};

class LoadedColored : public LoadedProgram {
 public:
  explicit LoadedColored(cuda::ColoredProgram program) : program_(std::move(program)) {}
  const cuda::Module& module() const override { return program_.module(); }

 private:
  cuda::ColoredProgram program_;
};

class ColoredMemory : public MemorySource {
 public:
  ColoredMemory(std::shared_ptr<cuda::ColoredPool> pool, std::uint32_t share,
                cuda::ColoredCode code)
      : pool_(std::move(pool)), share_(share), code_(std::move(code)) {}

  Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) override {
    DEMARC_TRY(auto buffer, pool_->allocate(share_, bytes));
    const std::uint64_t address = code_.pointer(buffer.first()).raw();
    return std::make_unique<ColoredPlace>(std::move(buffer), address);
  }
  Result<std::unique_ptr<LoadedProgram>> load(
      const ptx::Module& module, std::span<const cuda::KernelUse> uses) const override {
    DEMARC_TRY(auto program, cuda::ColoredProgram::load(pool_, share_, module, uses));
    return std::make_unique<LoadedColored>(std::move(program));
  }
  bool colored() const override { return true; }
  std::string account() const override {
    return fmt::format("colour {} of {}; {}", share_, pool_->colors().count(),
                       pool_->colors().account());
  }

 private:
  std::shared_ptr<cuda::ColoredPool> pool_;
  std::uint32_t share_;
  cuda::ColoredCode code_;
};

}  // namespace

Result<std::shared_ptr<MemorySource>> make_colored_memory(std::shared_ptr<cuda::ColoredPool> pool,
                                                          std::uint32_t share) {
  DEMARC_TRY(auto code, cuda::code_of_pool(*pool, share));
  return std::make_shared<ColoredMemory>(std::move(pool), share, std::move(code));
}

}  // namespace demarc::study
