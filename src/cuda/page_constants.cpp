#include <algorithm>

#include "demarc/cuda/colored_memory.hpp"
#include "measuring.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t measured_sms = 24;
constexpr std::uint64_t slice_chunk_bytes = 256;

}  // namespace

std::vector<std::uint32_t> measuring_sms(const Gpu& gpu) {
  const std::uint32_t available = gpu.sm_count();
  const std::uint32_t wanted = std::min(measured_sms, available);
  std::vector<std::uint32_t> sms;
  for (std::uint32_t i = 0; i < wanted; ++i) sms.push_back(i * available / wanted);
  return sms;
}

Result<gpu::SliceModel> measure_slices(const MemoryTimer& timer, const PageArena& arena) {
  const auto sms = measuring_sms(*arena.gpu());
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < arena.page_bytes(); at += slice_chunk_bytes)
    offsets.push_back(at);
  DEMARC_TRY(const auto latencies, timer.hit_latencies(arena.address(), offsets, sms,
                                                       sms_measuring_together, hit_repeats));
  return gpu::make_slice_model(latencies, arena.page_bytes(), sms);
}

Result<std::vector<std::uint32_t>> measure_page_constants(const MemoryTimer& timer,
                                                          const PageArena& arena,
                                                          const gpu::SliceModel& model,
                                                          std::uint32_t samples) {
  const auto offsets = gpu::sample_offsets(arena.page_bytes(), model.chunk_bytes, samples);
  std::vector<std::uint32_t> constants;
  std::uint64_t uncertain = 0;
  constexpr std::uint64_t batch = 2048;
  for (std::uint64_t first = 0; first < arena.pages(); first += batch) {
    const std::uint64_t count = std::min(batch, arena.pages() - first);
    std::vector<std::uint64_t> addresses;
    addresses.reserve(count * samples);
    for (std::uint64_t page = 0; page < count; ++page) {
      for (const auto offset : offsets) {
        addresses.push_back((first + page) * arena.page_bytes() + offset);
      }
    }
    DEMARC_TRY(const auto latencies, timer.hit_latencies(arena.address(), addresses, model.sms,
                                                         sms_measuring_together, hit_repeats));
    for (std::uint64_t page = 0; page < count; ++page) {
      const auto found = model.page_constant(offsets, latencies, page * samples);
      constants.push_back(found.constant);
      if (found.agreement < 0.9) ++uncertain;
    }
  }
  if (uncertain * 100 > arena.pages()) {
    return check_failed(
        "the constants of {} of {} pages are not certain: is another program using "
        "the card?",
        uncertain, arena.pages());
  }
  return constants;
}

}  // namespace demarc::cuda
