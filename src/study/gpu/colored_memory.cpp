#include "gpu/colored_memory.hpp"

#include <algorithm>
#include <map>

#include "demarc/ptx/colored.hpp"
#include "gpu/page_colors.hpp"
#include "gpu/rewritten_memory.hpp"

namespace demarc::study {
namespace {

constexpr std::uint64_t page_size = std::uint64_t{2} << 20U;
constexpr std::uint32_t sampling_sms = 12;
constexpr std::uint32_t sampling_repeats = 4;
constexpr std::uint64_t sample_stride = 343 * 256;   // about 24 samples a page
constexpr std::uint64_t reference_stride = 7 * 256;  // about 1170 on the first page
constexpr std::uint32_t sms_together = 4;  // more at a time disturb each other's latencies
constexpr float least_agreement = 0.75F;
constexpr int most_attempts = 3;

// Latencies of `lines` lines, `stride` bytes apart from `base`, seen from several SMs.
Result<LatencySamples> sample_latencies(const cuda::GpuPointer& gpu,
                                        const cuda::ProbeKernels& kernels, std::uint64_t base,
                                        std::uint64_t stride, std::uint32_t lines) {
  const std::uint32_t step = gpu->sm_count() / sampling_sms;
  DEMARC_TRY(const auto taken, cuda::DeviceBuffer::allocate(gpu, sampling_sms * 4ULL));
  DEMARC_TRY(const auto cycles, cuda::DeviceBuffer::allocate(gpu, 4ULL * sampling_sms * lines));
  DEMARC_CHECK(taken.fill(0));
  DEMARC_CHECK(cycles.fill(0));
  DEMARC_TRY(const std::uint32_t shared, cuda::whole_sm_shared_bytes(kernels.latency()));
  std::vector<cuda::Stream> streams;
  for (std::uint32_t i = 0; i < sms_together; ++i) {
    DEMARC_TRY(auto stream, cuda::Stream::create(gpu));
    streams.push_back(std::move(stream));
  }
  DEMARC_CHECK(cuda::launch(streams[0], kernels.self_lines(),
                            cuda::LaunchShape::line((lines + 255) / 256, 256), base, stride,
                            lines));
  DEMARC_CHECK(streams[0].wait());
  cuda::LaunchShape shape = cuda::LaunchShape::line(2 * gpu->sm_count(), 32);
  shape.shared_bytes = shared;
  for (std::uint32_t i = 0; i < sampling_sms; ++i) {
    DEMARC_CHECK(cuda::launch(streams[i % sms_together], kernels.latency(), shape, base, stride,
                              lines, sampling_repeats, i * step, std::uint32_t{0},
                              taken.address() + 4ULL * i, cycles.address() + 4ULL * i * lines));
  }
  for (const cuda::Stream& stream : streams) {
    DEMARC_CHECK(stream.wait(std::chrono::minutes(2)));
  }
  DEMARC_TRY(const auto raw, cycles.read<std::uint32_t>(std::size_t{sampling_sms} * lines));
  LatencySamples out;
  for (std::uint32_t line = 0; line < lines; ++line) {
    out.offsets.push_back(line * stride);
    std::vector<float> one;
    for (std::uint32_t i = 0; i < sampling_sms; ++i) {
      one.push_back(static_cast<float>(raw[std::size_t{i} * lines + line]) / 8.0F);
    }
    out.latencies.push_back(std::move(one));
  }
  return out;
}

}  // namespace

Result<void> ColoredArena::map_pages(const std::vector<std::size_t>& chosen) {
  range_.reset();
  DEMARC_TRY(auto range, cuda::AddressRange::reserve(gpu_, chosen.size() * page_size, page_size));
  range_ = std::make_unique<cuda::AddressRange>(std::move(range));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    DEMARC_CHECK(range_->map(i * page_size, pages_[chosen[i]]));
  }
  return range_->allow(0, chosen.size() * page_size);
}

Result<std::shared_ptr<ColoredArena>> ColoredArena::make(const cuda::GpuPointer& gpu,
                                                         const cuda::ProbeKernels& kernels,
                                                         const std::vector<std::uint64_t>& masks,
                                                         std::uint32_t pages) {
  std::shared_ptr<ColoredArena> arena(new ColoredArena());
  arena->gpu_ = gpu;
  DEMARC_TRY(auto coloring, gpu::Coloring::make(masks, page_size));
  arena->coloring_ = std::make_unique<gpu::Coloring>(std::move(coloring));
  std::vector<std::size_t> all;
  for (std::uint32_t i = 0; i < pages; ++i) {
    DEMARC_TRY(auto page, cuda::PhysicalMemory::create(gpu, page_size));
    arena->pages_.push_back(std::move(page));
    all.push_back(i);
  }
  DEMARC_CHECK(arena->map_pages(all));
  std::map<std::uint32_t, std::vector<std::size_t>> by_constant;
  std::size_t doubtful = pages;
  // Latencies jump while the card changes its clocks; then measuring again helps.
  for (int attempt = 0; attempt < most_attempts && doubtful * 10 > pages; ++attempt) {
    DEMARC_TRY(by_constant, arena->pages_by_constant(kernels, pages));
    doubtful = pages;
    for (const auto& [constant, of_it] : by_constant) doubtful -= of_it.size();
  }
  if (doubtful * 10 > pages) {
    return check_failed("colours: the constants of {} of {} pages are in doubt", doubtful, pages);
  }
  const auto best = std::max_element(
      by_constant.begin(), by_constant.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  arena->constant_ = best->first;
  arena->account_ = fmt::format("{} pages sampled, {} in doubt, {} of one constant kept", pages,
                                doubtful, best->second.size());
  DEMARC_CHECK(arena->map_pages(best->second));
  std::vector<cuda::PhysicalMemory> kept;
  for (const std::size_t i : best->second) kept.push_back(std::move(arena->pages_[i]));
  arena->pages_ = std::move(kept);  // the others go back to the driver
  return arena;
}

// Pages whose constant is certain, by constant.
Result<std::map<std::uint32_t, std::vector<std::size_t>>> ColoredArena::pages_by_constant(
    const cuda::ProbeKernels& kernels, std::uint32_t pages) const {
  DEMARC_TRY(const auto reference,
             sample_latencies(gpu_, kernels, address(), reference_stride,
                              static_cast<std::uint32_t>(page_size / reference_stride)));
  DEMARC_TRY(const auto samples,
             sample_latencies(gpu_, kernels, address(), sample_stride,
                              static_cast<std::uint32_t>(pages * page_size / sample_stride)));
  DEMARC_TRY(const auto found,
             find_page_colors(reference, samples, coloring_->masks(), page_size, pages));
  std::map<std::uint32_t, std::vector<std::size_t>> by_constant;
  for (std::uint32_t i = 0; i < pages; ++i) {
    if (found.agreement[i] >= least_agreement) by_constant[found.constants[i]].push_back(i);
  }
  return by_constant;
}

std::uint64_t ColoredArena::color_bytes() const {
  const std::uint64_t bytes = range_->bytes() / coloring_->colors();
  return bytes / coloring_->linear_period() * coloring_->linear_period();
}

Result<std::shared_ptr<MemorySource>> make_colored_memory(std::shared_ptr<ColoredArena> arena,
                                                          std::uint32_t color) {
  const auto masks = arena->coloring().masks();
  const ptx::ColoredAddressing addressing{{masks.begin(), masks.end()}, color ^ arena->constant()};
  RewrittenRange range;
  range.gpu = arena->gpu();
  range.base = ptx::colored_pointer(arena->address(), 0, addressing);
  range.bytes = arena->color_bytes();
  range.rewrite = [addressing](const ptx::Module& module, ptx::ColoredAccesses accesses) {
    return ptx::rewrite_colored(module, addressing, accesses);
  };
  range.color = fmt::format("colour {} of {}", color, arena->coloring().colors());
  range.account = arena->account();
  range.memory = std::move(arena);
  return make_rewritten_memory(std::move(range));
}

}  // namespace demarc::study
