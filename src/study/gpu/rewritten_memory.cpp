#include "gpu/rewritten_memory.hpp"

#include <algorithm>
#include <map>

#include "demarc/cuda/launch.hpp"
#include "demarc/ptx/parser.hpp"
#include "gpu/support_kernels.hpp"

namespace demarc::study {
namespace {

Result<std::string> rewritten_text(const RewrittenRange& range, const std::string& text,
                                   const std::string& name, ptx::ColoredAccesses accesses) {
  DEMARC_TRY(const auto module, ptx::parse_whole(text, name));
  return range.rewrite(module, accesses);
}

// A copy of 32-bit words, one side of which is rewritten.
class Carrier {
 public:
  static Result<Carrier> make(const RewrittenRange& range, ptx::ColoredAccesses accesses) {
    DEMARC_TRY(const auto text, rewritten_text(range, support_kernels_ptx(), "copies", accesses));
    DEMARC_TRY(auto module, cuda::Module::load(range.gpu, text, "copies"));
    DEMARC_TRY(auto function, module.function("demarc_copy"));
    DEMARC_TRY(auto stream, cuda::Stream::create(range.gpu));
    return Carrier(std::move(module), std::move(function), std::move(stream));
  }

  Result<void> carry(std::uint64_t to, std::uint64_t from, std::uint64_t words) const {
    constexpr std::uint32_t threads = 256;
    const auto blocks =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(words / threads, 1, 1056));
    DEMARC_CHECK(cuda::launch(stream_, function_, cuda::LaunchShape::line(blocks, threads), to,
                              from, words));
    return stream_.wait(std::chrono::minutes(1));
  }

 private:
  Carrier(cuda::Module module, cuda::Function function, cuda::Stream stream)
      : module_(std::move(module)), function_(std::move(function)), stream_(std::move(stream)) {}
  cuda::Module module_;
  cuda::Function function_;
  cuda::Stream stream_;
};

// What a range and its buffers share.
struct Shared {
  RewrittenRange range;
  Carrier in;
  Carrier out;
  std::map<std::uint64_t, std::uint64_t> used;  // start -> length, linear
};

class RewrittenBuffer : public PlacedBuffer {
 public:
  RewrittenBuffer(std::shared_ptr<Shared> shared, std::uint64_t linear)
      : shared_(std::move(shared)), linear_(linear) {}
  ~RewrittenBuffer() override { shared_->used.erase(linear_); }
  RewrittenBuffer(const RewrittenBuffer&) = delete;
  RewrittenBuffer& operator=(const RewrittenBuffer&) = delete;

  std::uint64_t address() const override { return shared_->range.base + linear_; }

  Result<void> upload(const void* source, std::size_t bytes) override {
    DEMARC_TRY(const auto staging, stage(bytes));
    DEMARC_CHECK(staging.upload(source, bytes));
    return shared_->in.carry(address(), staging.address(), words(bytes));
  }
  Result<void> download(void* target, std::size_t bytes) override {
    DEMARC_TRY(const auto staging, stage(bytes));
    DEMARC_CHECK(shared_->out.carry(staging.address(), address(), words(bytes)));
    return staging.download(target, bytes);
  }

 private:
  static std::uint64_t words(std::size_t bytes) { return (bytes + 3) / 4; }
  Result<cuda::DeviceBuffer> stage(std::size_t bytes) const {
    return cuda::DeviceBuffer::allocate(shared_->range.gpu, words(bytes) * 4);
  }

  std::shared_ptr<Shared> shared_;
  std::uint64_t linear_;
};

class RewrittenMemory : public MemorySource {
 public:
  explicit RewrittenMemory(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  Result<std::unique_ptr<PlacedBuffer>> place(std::size_t bytes) override {
    const RewrittenRange& range = shared_->range;
    const std::uint64_t wanted = (bytes + range.alignment - 1) / range.alignment * range.alignment;
    std::uint64_t at = 0;  // the first gap that is large enough
    for (const auto& [start, length] : shared_->used) {
      if (start - at >= wanted) break;
      at = start + length;
    }
    if (at + wanted > range.bytes) {
      return missing_capability("{} bytes do not fit into the {} bytes of {}", bytes, range.bytes,
                                range.color);
    }
    shared_->used.emplace(at, wanted);
    return std::make_unique<RewrittenBuffer>(shared_, at);
  }

  Result<std::string> adapt(const std::string& ptx, const std::string& name) const override {
    return rewritten_text(shared_->range, ptx, name, ptx::ColoredAccesses::all);
  }

  std::string account() const override {
    return fmt::format("{}; {}", shared_->range.color, shared_->range.account);
  }

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace

Result<std::shared_ptr<MemorySource>> make_rewritten_memory(RewrittenRange range) {
  DEMARC_TRY(auto in, Carrier::make(range, ptx::ColoredAccesses::stores));
  DEMARC_TRY(auto out, Carrier::make(range, ptx::ColoredAccesses::loads));
  auto shared =
      std::make_shared<Shared>(Shared{std::move(range), std::move(in), std::move(out), {}});
  return std::make_shared<RewrittenMemory>(std::move(shared));
}

}  // namespace demarc::study
