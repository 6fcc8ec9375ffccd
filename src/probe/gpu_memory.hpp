// The memory of a real card as the probe sees it: an arena of 2 MiB pages.
#pragma once

#include <memory>

#include "demarc/card/memory_timer.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/probe/timed_memory.hpp"

namespace demarc::probe {

class GpuMemory final : public TimedMemory {
 public:
  // Takes `bytes` of the card's memory, rounded down to pages, and at most what is free.
  static Result<std::unique_ptr<GpuMemory>> open(cuda::GpuPointer gpu, std::uint64_t bytes);

  [[nodiscard]] const MemoryFacts& facts() const override { return facts_; }
  Result<std::vector<float>> uncached_pairs(std::uint64_t primary,
                                            std::span<const std::uint64_t> secondaries) override;
  Result<std::vector<float>> reread(std::uint64_t first, std::span<const std::uint64_t> then,
                                    std::span<const std::uint64_t> candidates) override;
  Result<float> crowded_read(std::uint64_t primary,
                             std::span<const std::uint64_t> secondaries) override;
  Result<gpu::LatencyMatrix> hit_latencies(std::span<const std::uint64_t> addresses,
                                           std::span<const gpu::SmIndex> sms,
                                           std::uint32_t together, std::uint32_t repeats) override;
  Result<double> stream_seconds(const Stream& victim, const Stream& aggressor) override;

 private:
  GpuMemory(cuda::MemoryTimer timer, cuda::PageArena arena)
      : timer_(std::move(timer)), arena_(std::move(arena)) {}
  cuda::MemoryTimer timer_;
  cuda::PageArena arena_;
  MemoryFacts facts_;
  cuda::SmRoles roles_;
};

}  // namespace demarc::probe
