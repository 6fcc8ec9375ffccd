#include "gpu/remainder_memory.hpp"

#include "demarc/ptx/colored.hpp"
#include "demarc/ptx/parser.hpp"

namespace demarc::study {
namespace {

class RemainderBuffer : public PlacedBuffer {
 public:
  // Kernels count on from the arena's address in bytes of the colour.
  RemainderBuffer(cuda::ColoredBuffer buffer, std::uint64_t arena)
      : buffer_(std::move(buffer)), address_(arena + buffer_.first()) {}
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

class RemainderMemory : public MemorySource {
 public:
  RemainderMemory(std::shared_ptr<cuda::ColoredPool> pool, std::uint32_t color,
                  ptx::RemainderAddressing addressing)
      : pool_(std::move(pool)), color_(color), addressing_(std::move(addressing)) {}

  Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) override {
    DEMARC_TRY(auto buffer, pool_->allocate(color_, bytes));
    return std::make_unique<RemainderBuffer>(std::move(buffer), addressing_.arena);
  }
  Result<std::string> adapt(const std::string& ptx, const std::string& name) const override {
    DEMARC_TRY(const auto module, ptx::parse_whole(ptx, name));
    return ptx::rewrite_remainders(module, addressing_);
  }
  std::string account() const override {
    return fmt::format("colour {} of {}; {}", color_, pool_->colors(),
                       pool_->remainders()->account);
  }

 private:
  std::shared_ptr<cuda::ColoredPool> pool_;
  std::uint32_t color_;
  ptx::RemainderAddressing addressing_;
};

}  // namespace

Result<std::shared_ptr<MemorySource>> make_remainder_memory(std::shared_ptr<cuda::ColoredPool> pool,
                                                            std::uint32_t color) {
  if (pool->remainders() == nullptr) return invalid_input("the colours of this pool are parities");
  const cuda::RemainderColors& colors = *pool->remainders();
  const gpu::RemainderColoring& coloring = colors.coloring;
  ptx::RemainderAddressing addressing;
  addressing.arena = pool->arena().address();
  addressing.pages = colors.table->address();
  addressing.page_count = static_cast<std::uint32_t>(coloring.pages().size());
  addressing.modulus = coloring.hash().modulus;
  addressing.first = coloring.window(color).first;
  addressing.count = coloring.window(color).count;
  addressing.chunk_shift = coloring.hash().chunk_shift;
  addressing.block_shift = coloring.hash().block_shift;
  addressing.digits = static_cast<std::uint32_t>(coloring.hash().digits.size());
  addressing.of_number = coloring.patterns().of_number;
  addressing.of_free_bit = coloring.patterns().of_free_bit;
  return std::make_shared<RemainderMemory>(std::move(pool), color, std::move(addressing));
}

}  // namespace demarc::study
