// Packs and replays steps, and coalesces lanes into lines.
#include "demarc/sim/memory/work.hpp"

#include <algorithm>
#include <bit>

namespace demarc::sim::memory {

std::uint64_t head_of(const Step& step) {
  return static_cast<std::uint64_t>(step.kind) | (std::uint64_t{step.wait} << 3U) |
         (std::uint64_t{step.past_l1} << 4U) | (std::uint64_t{step.streams} << 5U) |
         (std::uint64_t{step.partial} << 6U) | (std::uint64_t{step.floats != 0} << 7U) |
         (std::uint64_t{step.count} << 8U) | (std::uint64_t{step.instructions} << 16U) |
         (std::uint64_t{step.shared_rows} << 48U);
}

bool read_head(std::uint64_t head, Step& step) {
  step.kind = static_cast<StepKind>(head & 7U);
  step.wait = (head & 8U) != 0;
  step.past_l1 = (head & 16U) != 0;
  step.streams = (head & 32U) != 0;
  step.partial = (head & 64U) != 0;
  step.count = static_cast<std::uint8_t>(head >> 8U);
  step.instructions = static_cast<std::uint32_t>(head >> 16U);
  step.shared_rows = static_cast<std::uint16_t>(head >> 48U);
  step.floats = 0;
  return (head & 128U) != 0;
}

void PackedSteps::add(const Step& step) {
  words_.push_back(head_of(step));
  if (step.floats != 0) words_.push_back(step.floats);
  for (std::size_t i = 0; i < step.count; ++i) words_.push_back(step.lines[i].word());
}

void PackedSteps::read(std::size_t& at, Step& step) const {
  if (at >= words_.size()) {
    read_head(static_cast<std::uint64_t>(StepKind::end), step);
    return;
  }
  if (read_head(words_[at++], step)) step.floats = static_cast<std::uint32_t>(words_[at++]);
  const std::uint64_t* const words = words_.data() + at;
  for (std::size_t i = 0; i < step.count; ++i) step.lines[i] = LineEntry::again(words[i]);
  at += step.count;
}

std::size_t PackedBlock::bytes() const {
  std::size_t sum = 0;
  for (const PackedSteps& warp : warps) sum += warp.bytes();
  return sum;
}

std::size_t PackedLaunch::bytes() const {
  std::size_t sum = 0;
  for (const PackedKernel& kernel : kernels) {
    for (const auto& block : kernel.blocks) sum += block->bytes();
  }
  return sum;
}

namespace {

class ReplayedBlock final : public BlockWork {
 public:
  explicit ReplayedBlock(std::shared_ptr<const PackedBlock> block)
      : block_(std::move(block)), at_(block_->warps.size(), 0) {}
  void next(std::uint32_t warp, Step& step) override { block_->warps[warp].read(at_[warp], step); }

 private:
  std::shared_ptr<const PackedBlock> block_;
  std::vector<std::size_t> at_;
};

class ReplayedLaunch final : public Source {
 public:
  explicit ReplayedLaunch(std::shared_ptr<const PackedLaunch> launch)
      : launch_(std::move(launch)) {}
  Result<void> restart() override {
    kernel_ = 0;
    return {};
  }
  Result<bool> next_kernel(KernelShape& shape) override {
    if (kernel_ >= launch_->kernels.size()) return false;
    shape = launch_->kernels[kernel_++].shape;
    block_ = 0;
    return true;
  }
  Result<std::unique_ptr<BlockWork>> next_block() override {
    return replay_block(launch_->kernels[kernel_ - 1].blocks.at(block_++));
  }

 private:
  std::shared_ptr<const PackedLaunch> launch_;
  std::size_t kernel_ = 0;
  std::size_t block_ = 0;
};

}  // namespace

std::unique_ptr<BlockWork> replay_block(std::shared_ptr<const PackedBlock> block) {
  return std::make_unique<ReplayedBlock>(std::move(block));
}

std::unique_ptr<Source> replay_launch(std::shared_ptr<const PackedLaunch> launch) {
  return std::make_unique<ReplayedLaunch>(std::move(launch));
}

std::uint8_t coalesce(const std::array<std::uint64_t, 32>& addresses, std::uint32_t mask,
                      std::uint32_t bytes, std::array<LineEntry, 32>& lines) {
  std::uint8_t count = 0;
  const auto add = [&](Address address) {
    const LineEntry entry(address, sector_of(address));
    // Lanes mostly go upwards: the last entry is the likely one.
    for (std::size_t i = count; i-- > 0;) {
      if (lines[i].line() == entry.line()) {
        lines[i].add(entry.sectors());
        return;
      }
    }
    if (count < lines.size()) lines[count++] = entry;
  };
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const Address first(addresses[static_cast<unsigned>(std::countr_zero(rest))]);
    // Counted, for addresses wrap at 2^64.
    std::uint64_t sectors =
        (first.raw() % sector_bytes + std::max(bytes, 1U) - 1) / sector_bytes + 1;
    for (Address at = first; sectors > 0; --sectors, at = at + sector_bytes) add(at);
  }
  std::sort(lines.begin(), lines.begin() + count);
  return count;
}

}  // namespace demarc::sim::memory
