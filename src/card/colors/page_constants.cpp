// Measures the L2 slices of a page and the constants that other pages add to them.
#include <algorithm>

#include "colors/measuring.hpp"
#include "demarc/card/colored_memory.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint64_t slice_chunk_bytes = 256;
// Latencies jump while the card changes its clocks; then measuring again helps.
constexpr int max_attempts = 3;

}  // namespace

Result<gpu::SliceModel> measure_slices(const MemoryTimer& timer, const PageArena& arena) {
  const auto sms = measuring_sms(*arena.gpu());
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < arena.page_bytes(); at += slice_chunk_bytes)
    offsets.push_back(at);
  DEMARC_TRY(const auto latencies, timer.hit_latencies(arena.address(), offsets, sms,
                                                       sms_measuring_together, hit_repeats));
  return gpu::make_slice_model(latencies, arena.page_bytes(), sms);
}

Result<std::vector<std::optional<std::uint32_t>>> measure_page_constants(
    const MemoryTimer& timer, const PageArena& arena, const gpu::SliceModel& model,
    std::uint32_t samples) {
  const auto read = [&](std::span<const std::uint64_t> addresses) {
    return timer.hit_latencies(arena.address(), addresses, model.sms, sms_measuring_together,
                               hit_repeats);
  };
  std::vector<std::optional<std::uint32_t>> constants;
  std::size_t doubtful = arena.pages();
  for (int attempt = 0; attempt < max_attempts && doubtful * 10 > arena.pages(); ++attempt) {
    DEMARC_TRY(const auto found, gpu::find_page_constants(model, arena.pages(), samples, read));
    constants.clear();
    for (const gpu::PageConstant& page : found) {
      constants.push_back(page.certain() ? std::optional(page.constant) : std::nullopt);
    }
    doubtful = static_cast<std::size_t>(
        std::count(constants.begin(), constants.end(), std::optional<std::uint32_t>()));
  }
  if (doubtful * 10 > arena.pages()) {
    return check_failed(
        "the constants of {} of {} pages are not certain: is another program using the card?",
        doubtful, arena.pages());
  }
  return constants;
}

}  // namespace demarc::cuda
