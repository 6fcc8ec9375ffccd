#include <algorithm>
#include <numeric>

#include "colors/measuring.hpp"
#include "demarc/cuda/colored_memory.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t audit_samples = 16;  // of a chunk, where it is large enough
constexpr std::size_t audit_batch = 4096;    // chunks measured in one go
constexpr std::uint64_t number_samples = 4;  // of the chunks of one number, remainders
constexpr double least_audit_agreement = 0.75;

// How far a remainder lies behind the first of a run.
std::uint32_t behind(std::uint32_t remainder, const gpu::RemainderColoring& coloring,
                     std::uint32_t color) {
  const std::uint32_t modulus = coloring.hash().modulus;
  return (remainder + modulus - coloring.window(color).first) % modulus;
}

// What lies between two runs counts as the colour of the one before.
std::uint32_t color_of(std::uint32_t remainder, const gpu::RemainderColoring& coloring) {
  std::uint32_t nearest = 0;
  for (std::uint32_t color = 1; color < coloring.colors(); ++color) {
    if (behind(remainder, coloring, color) < behind(remainder, coloring, nearest)) nearest = color;
  }
  return nearest;
}

}  // namespace

std::uint64_t ColorAudit::chunks() const {
  return std::accumulate(chunks_of_color.begin(), chunks_of_color.end(), unclear);
}

Result<ColorAudit> ColoredBuffer::audit() const {
  if (!pool_->timer_) {
    return missing_capability("this pool was made from given constants; it cannot be audited");
  }
  if (const auto* run = std::get_if<RemainderShare>(&share_)) return audit_remainders(*run);
  return audit_masks(std::get<ColorShare>(share_));
}

Result<ColorAudit> ColoredBuffer::audit_masks(const ColorShare& share) const {
  const gpu::SliceModel& model = *pool_->model_;
  const gpu::Coloring& coloring = pool_->coloring();
  const std::uint64_t wanted = pool_->shares_[share_index_].color_set;
  const DevicePointer arena = pool_->arena().address();
  const std::uint64_t page = pool_->arena().page_bytes();
  const std::uint64_t chunk = run_bytes();
  const std::uint64_t samples = std::min(audit_samples, std::max<std::uint64_t>(chunk / 256, 1));
  ColorAudit audit;
  audit.chunk_bytes = chunk;
  audit.chunks_of_color.assign(coloring.colors(), 0);
  // Whole chunks from the one the buffer begins in to the one it ends in.
  const std::uint64_t begin = first_ / chunk;
  const std::uint64_t end = (first_ + bytes_ + chunk - 1) / chunk;
  for (std::uint64_t first = begin; first < end; first += audit_batch) {
    const std::uint64_t count = std::min<std::uint64_t>(audit_batch, end - first);
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t k = first; k < first + count; ++k) {
      const std::uint64_t at = base_ - arena + share.coloring.position(k * chunk, share.color);
      for (std::uint64_t s = 0; s < samples; ++s) {
        offsets.push_back(at + chunk / samples * s / 256 * 256);
      }
    }
    DEMARC_TRY(const auto latencies,
               pool_->timer_->hit_latencies(arena, offsets, model.sms, sms_measuring_together,
                                            hit_repeats));
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

// A chunk here is what has one number, 2 KiB on an H200.
Result<ColorAudit> ColoredBuffer::audit_remainders(const RemainderShare& share) const {
  const RemainderColors& colors = *pool_->remainders();
  const gpu::RemainderColoring& coloring = *share.coloring;
  const DevicePointer arena = pool_->arena().address();
  const std::uint64_t page = pool_->arena().page_bytes();
  const std::uint64_t unit = coloring.hash().unit_bytes();
  const std::uint64_t samples = std::min(number_samples, unit / run_bytes());
  ColorAudit audit;
  audit.chunk_bytes = unit;
  audit.chunks_of_color.assign(pool_->colors(), 0);
  const std::uint64_t begin = first_ / unit;
  const std::uint64_t end = (first_ + bytes_ + unit - 1) / unit;
  for (std::uint64_t first = begin; first < end; first += audit_batch) {
    const std::uint64_t count = std::min<std::uint64_t>(audit_batch, end - first);
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t k = first; k < first + count; ++k) {
      for (std::uint64_t s = 0; s < samples; ++s) {
        offsets.push_back(coloring.position(k * unit + unit / samples * s, 0));
      }
    }
    DEMARC_TRY(const auto latencies,
               pool_->timer_->hit_latencies(arena, offsets, colors.sms, sms_measuring_together,
                                            hit_repeats));
    for (std::uint64_t k = 0; k < count; ++k) {
      std::vector<std::uint64_t> in_page(
          offsets.begin() + static_cast<std::ptrdiff_t>(k * samples),
          offsets.begin() + static_cast<std::ptrdiff_t>((k + 1) * samples));
      for (std::uint64_t& offset : in_page) offset %= page;
      const auto found = gpu::find_number_remainders(colors.model, in_page, latencies, k * samples);
      const auto inside = std::count_if(
          found.remainders.begin(), found.remainders.end(), [&](std::uint32_t remainder) {
            return behind(remainder, coloring, 0) < coloring.window(0).count;
          });
      const bool all = inside == std::ssize(found.remainders);
      if (found.agreement < least_audit_agreement || (inside != 0 && !all)) {
        ++audit.unclear;
        continue;
      }
      ++audit.chunks_of_color[color_of(found.remainders.front(), colors.coloring)];
      if (!all) ++audit.outside;
    }
  }
  return audit;
}

}  // namespace demarc::cuda
