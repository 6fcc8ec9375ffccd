#include <algorithm>
#include <numeric>

#include "demarc/cuda/colored_memory.hpp"

namespace demarc::cuda {
namespace {

// As for page constants: eight SMs at a time do not disturb each other.
constexpr std::uint32_t audit_together = 8;
constexpr std::uint32_t audit_repeats = 4;
constexpr std::uint64_t audit_samples = 16;  // of a chunk, where it is large enough
constexpr std::size_t audit_batch = 4096;    // chunks measured in one go
constexpr double least_audit_agreement = 0.75;

}  // namespace

std::uint64_t ColorAudit::chunks() const {
  return std::accumulate(chunks_of_color.begin(), chunks_of_color.end(), unclear);
}

Result<ColorAudit> ColoredBuffer::audit() const {
  if (!pool_->timer_ || !pool_->model_) {
    return missing_capability("this pool was made from given constants; it cannot be audited");
  }
  const gpu::SliceModel& model = *pool_->model_;
  const gpu::Coloring& coloring = pool_->coloring();
  const std::uint64_t wanted = pool_->shares_[share_index_].color_set;
  const DevicePointer arena = pool_->arena().address();
  const std::uint64_t page = pool_->arena().page_bytes();
  const std::uint64_t chunk = run_bytes();
  const std::uint64_t samples = std::min(audit_samples, std::max<std::uint64_t>(chunk / 256, 1));
  ColorAudit audit;
  audit.chunks_of_color.assign(coloring.colors(), 0);
  // Whole chunks from the one the buffer begins in to the one it ends in.
  const std::uint64_t begin = first_ / chunk;
  const std::uint64_t end = (first_ + bytes_ + chunk - 1) / chunk;
  for (std::uint64_t first = begin; first < end; first += audit_batch) {
    const std::uint64_t count = std::min<std::uint64_t>(audit_batch, end - first);
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t k = first; k < first + count; ++k) {
      const std::uint64_t at = base_ - arena + share_.coloring.position(k * chunk, share_.color);
      for (std::uint64_t s = 0; s < samples; ++s) {
        offsets.push_back(at + chunk / samples * s / 256 * 256);
      }
    }
    DEMARC_TRY(const auto latencies, pool_->timer_->hit_latencies(arena, offsets, model.sms,
                                                                  audit_together, audit_repeats));
    for (std::uint64_t k = 0; k < count; ++k) {
      std::vector<std::uint64_t> in_page(
          offsets.begin() + static_cast<std::ptrdiff_t>(k * samples),
          offsets.begin() + static_cast<std::ptrdiff_t>((k + 1) * samples));
      for (std::uint64_t& offset : in_page) offset %= page;
      const auto found = model.page_constant(in_page, latencies, k * samples);
      if (found.agreement < least_audit_agreement) {
        ++audit.unclear;
        continue;
      }
      DEMARC_TRY(const std::uint32_t constant,
                 coloring.constant_from_rows(model.masks, found.constant));
      const std::uint32_t color = coloring.color(in_page.front(), constant);
      ++audit.chunks_of_color[color];
      if (((wanted >> color) & 1U) == 0) ++audit.outside;
    }
  }
  return audit;
}

}  // namespace demarc::cuda
