// The translation of a real card as the probe sees it.
#pragma once

#include "demarc/card/page_timer.hpp"
#include "demarc/probe/timed_pages.hpp"

namespace demarc::probe {

// What is taken of the machine at most.
struct TranslationLimits {
  std::uint64_t card_bytes = std::uint64_t{100} << 30U;  // bytes of the card, and of the peer
  std::uint64_t host_bytes = std::uint64_t{4} << 30U;
  std::chrono::microseconds traffic_lasts{4000};  // per rate, beside warming up
};

class GpuTranslation final : public TimedTranslation {
 public:
  // `peer`: the card whose memory is the peer's; null: none.
  static Result<std::unique_ptr<GpuTranslation>> open(cuda::GpuPointer gpu, cuda::GpuPointer peer,
                                                      const TranslationLimits& limits);
  [[nodiscard]] const TranslationFacts& facts() const override { return facts_; }
  // Takes nine tenths of what is free at most, so that the driver keeps room for its own.
  Result<std::unique_ptr<TimedPages>> map(const Mapping& mapping) override;

 private:
  GpuTranslation(cuda::GpuPointer gpu, cuda::GpuPointer peer, cuda::PageTimer timer,
                 const TranslationLimits& limits)
      : gpu_(std::move(gpu)), peer_(std::move(peer)), timer_(std::move(timer)), limits_(limits) {}
  [[nodiscard]] cuda::PageTraffic evicting() const;
  [[nodiscard]] Result<std::uint64_t> usable_bytes(const cuda::Gpu& owner) const;

  cuda::GpuPointer gpu_;
  cuda::GpuPointer peer_;
  cuda::PageTimer timer_;
  TranslationLimits limits_;
  TranslationFacts facts_;
};

}  // namespace demarc::probe
