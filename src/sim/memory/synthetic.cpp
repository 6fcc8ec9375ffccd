// Makes the steps of warps that walk over the lines of a stretch of memory.
#include "demarc/sim/memory/synthetic.hpp"

#include <bit>

#include "demarc/base/hash.hpp"

namespace demarc::sim::memory {
namespace {

// Lines of a walk by number.
struct WalkPlan {
  Walk walk;
  std::uint64_t lines = 0;
  std::uint64_t mask = 0;  // 0: the lines are no power of two
  std::uint64_t all = 0;   // accesses

  explicit WalkPlan(const Walk& given) : walk(given) {
    const std::uint64_t bytes =
        walk.chunks ? std::uint64_t{walk.chunks->size()} << walk.chunk_shift : walk.bytes;
    lines = bytes >> line_shift;
    mask = std::has_single_bit(lines) ? lines - 1 : 0;
    all = lines * walk.rounds;
  }
  // `number` modulo the lines; the host takes long to divide.
  [[nodiscard]] std::uint64_t wrapped(std::uint64_t number) const {
    return mask != 0 ? number & mask : number % lines;
  }
  [[nodiscard]] Address address(std::uint64_t number) const {
    if (!walk.chunks) return walk.base + (number << line_shift);
    const std::uint32_t shift = walk.chunk_shift - line_shift;
    const std::uint64_t chunk = (*walk.chunks)[number >> shift];
    return Address(chunk << walk.chunk_shift) +
           ((number & ((std::uint64_t{1} << shift) - 1)) << line_shift);
  }
};

class WalkBlock final : public BlockWork {
 public:
  WalkBlock(std::shared_ptr<const WalkPlan> plan, std::uint32_t block)
      : plan_(std::move(plan)), warps_((plan_->walk.threads + 31) / 32), at_(warps_, 0) {
    first_ = std::uint64_t{block} * warps_;
    stride_ = std::uint64_t{plan_->walk.blocks} * warps_;
  }

  void next(std::uint32_t warp, Step& step) override {
    const Walk& walk = plan_->walk;
    const std::uint32_t taken = at_[warp];
    const std::uint64_t number = first_ + warp + taken * stride_;
    step.count = 0;
    step.wait = step.past_l1 = step.streams = step.partial = false;
    step.shared_rows = 0;
    step.instructions = 0;
    step.floats = 0;
    step.kind = StepKind::end;
    if (number >= plan_->all) return;
    ++at_[warp];
    const std::uint64_t line =
        plan_->wrapped(walk.order == WalkOrder::random ? shuffled(number) : number);
    step.kind = walk.kind;
    step.wait = walk.ahead != 0 && taken % walk.ahead == 0;
    step.instructions = walk.instructions;
    step.count = 1;
    const std::uint32_t mask = (1U << walk.sectors) - 1;
    step.lines[0] = {plan_->address(line), walk.sectors == 1 ? 1U << (line & 3U) : mask};
  }

 private:
  static std::uint64_t shuffled(std::uint64_t x) { return stirred(x + 0x9e3779b97f4a7c15ULL); }

  std::shared_ptr<const WalkPlan> plan_;
  std::uint32_t warps_;
  std::uint64_t first_ = 0;
  std::uint64_t stride_ = 1;
  std::vector<std::uint32_t> at_;  // accesses each warp has taken
};

class WalkSource final : public Source {
 public:
  explicit WalkSource(const Walk& walk) : plan_(std::make_shared<const WalkPlan>(walk)) {}
  Result<void> restart() override {
    started_ = false;
    return {};
  }
  Result<bool> next_kernel(KernelShape& shape) override {
    if (started_) return false;
    started_ = true;
    block_ = 0;
    shape = {plan_->walk.blocks, plan_->walk.threads, 0};
    return true;
  }
  Result<std::unique_ptr<BlockWork>> next_block() override {
    return std::make_unique<WalkBlock>(plan_, block_++);
  }

 private:
  std::shared_ptr<const WalkPlan> plan_;
  bool started_ = false;
  std::uint32_t block_ = 0;
};

}  // namespace

std::unique_ptr<Source> walk_source(const Walk& walk) {
  return std::make_unique<WalkSource>(walk);
}

}  // namespace demarc::sim::memory
