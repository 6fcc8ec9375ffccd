#include "gpu/remainder_memory.hpp"

#include <algorithm>
#include <map>

#include "demarc/base/parallel.hpp"
#include "demarc/cuda/memory_timer.hpp"
#include "demarc/gpu/slice_model.hpp"
#include "demarc/ptx/colored.hpp"
#include "gpu/page_order.hpp"
#include "gpu/rewritten_memory.hpp"

namespace demarc::study {
namespace {

constexpr std::uint32_t latency_sms = 24;
constexpr std::uint32_t sms_at_a_time = 8;
constexpr std::uint32_t latency_repeats = 4;
constexpr std::uint32_t samples_a_page = 32;
constexpr std::uint32_t pages_at_a_time = 1024;

std::vector<std::uint32_t> spread_over(std::uint32_t sms) {
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t i = 0; i < latency_sms; ++i) chosen.push_back(i * sms / latency_sms);
  return chosen;
}

Result<std::vector<std::uint32_t>> sides_of(const gpu::Topology& topology,
                                            const std::vector<std::uint32_t>& sms) {
  if (!topology.sides_known()) {
    return missing_capability("colours by L2 side: the side of each TPC is not known; demarc topo");
  }
  std::map<std::uint32_t, std::uint32_t> side_of_sm;
  for (const gpu::Tpc& tpc : topology.tpcs) {
    for (const std::uint32_t sm : tpc.sms) side_of_sm[sm] = tpc.side.value_or(0);
  }
  std::vector<std::uint32_t> sides;
  sides.reserve(sms.size());
  for (const std::uint32_t sm : sms) sides.push_back(side_of_sm[sm]);
  return sides;
}

Result<gpu::RemainderModel> measure_model(const cuda::MemoryTimer& timer,
                                          const cuda::PageArena& arena,
                                          const std::vector<std::uint32_t>& sms) {
  gpu::RemainderHash hash = gpu::h200_remainders();
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < hash.page_bytes; at += std::uint64_t{1} << hash.chunk_shift) {
    offsets.push_back(at);
  }
  DEMARC_TRY(const auto latencies,
             timer.hit_latencies(arena.address(), offsets, sms, sms_at_a_time, latency_repeats));
  return gpu::make_remainder_model(std::move(hash), latencies);
}

Result<std::vector<gpu::PageRemainder>> measure_pages(const cuda::MemoryTimer& timer,
                                                      const cuda::PageArena& arena,
                                                      const std::vector<std::uint32_t>& sms,
                                                      const gpu::RemainderModel& model) {
  const auto samples = gpu::sample_offsets(
      model.hash.page_bytes, std::uint64_t{1} << model.hash.chunk_shift, samples_a_page);
  std::vector<gpu::PageRemainder> found(arena.pages());
  for (std::uint64_t first = 0; first < arena.pages(); first += pages_at_a_time) {
    const std::uint64_t count = std::min<std::uint64_t>(pages_at_a_time, arena.pages() - first);
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t page = first; page < first + count; ++page) {
      for (const std::uint64_t at : samples) offsets.push_back(page * model.hash.page_bytes + at);
    }
    DEMARC_TRY(const auto latencies,
               timer.hit_latencies(arena.address(), offsets, sms, sms_at_a_time, latency_repeats));
    parallel_for(count, 0, [&](std::size_t i) {
      found[first + i] = gpu::find_page_remainder(model, samples, latencies, i * samples.size());
    });
  }
  return found;
}

}  // namespace

Result<std::shared_ptr<RemainderArena>> RemainderArena::make(const cuda::GpuPointer& gpu,
                                                             const gpu::Topology& topology,
                                                             std::uint32_t pages,
                                                             std::uint32_t parts) {
  std::shared_ptr<RemainderArena> self(new RemainderArena());
  self->gpu_ = gpu;
  const auto sms = spread_over(gpu->sm_count());
  DEMARC_TRY(const auto sides, sides_of(topology, sms));
  DEMARC_TRY(const auto timer, cuda::MemoryTimer::create(gpu));
  DEMARC_TRY(auto arena, cuda::PageArena::create(gpu, pages));
  DEMARC_TRY(const auto model, measure_model(timer, arena, sms));
  DEMARC_TRY(const auto found, measure_pages(timer, arena, sms, model));
  const auto order = order_by_remainder(model, found);
  if (order.size() * 2 < pages) {
    return check_failed("colours: only {} of {} pages follow each other in their remainders",
                        order.size(), pages);
  }
  std::vector<std::uint32_t> constants;
  constants.reserve(order.size());
  for (const std::uint32_t page : order) constants.push_back(found[page].constant);
  DEMARC_CHECK(arena.arrange(order));
  DEMARC_TRY(auto windows, windows_by_side(sides_of_remainders(model, sides), parts));
  std::string text;
  for (const auto& window : windows) text += fmt::format(" {}+{}", window.first, window.count);
  DEMARC_TRY(auto coloring,
             gpu::RemainderColoring::make(model.hash, std::move(windows), constants));
  const auto constants_of_pages = coloring.pages();
  DEMARC_TRY(auto table, cuda::DeviceBuffer::allocate(gpu, constants_of_pages.size_bytes()));
  DEMARC_CHECK(table.upload(constants_of_pages.data(), constants_of_pages.size_bytes()));
  self->account_ = fmt::format(
      "{} of {} pages in the order of their remainders (modulo {}, {:.1f} % of a page's latencies "
      "explained), colours:{}",
      order.size(), pages, model.hash.modulus, 100 * model.agreement, text);
  self->arena_ = std::make_unique<cuda::PageArena>(std::move(arena));
  self->coloring_ = std::make_unique<gpu::RemainderColoring>(std::move(coloring));
  self->pages_ = std::make_unique<cuda::DeviceBuffer>(std::move(table));
  return self;
}

Result<std::shared_ptr<MemorySource>> make_remainder_memory(std::shared_ptr<RemainderArena> arena,
                                                            std::uint32_t color) {
  const gpu::RemainderColoring& coloring = arena->coloring();
  ptx::RemainderAddressing addressing;
  addressing.arena = arena->address();
  addressing.pages = arena->pages_address();
  addressing.page_count = static_cast<std::uint32_t>(coloring.pages().size());
  addressing.modulus = coloring.hash().modulus;
  addressing.first = coloring.window(color).first;
  addressing.count = coloring.window(color).count;
  addressing.chunk_shift = coloring.hash().chunk_shift;
  addressing.block_shift = coloring.hash().block_shift;
  addressing.digits = static_cast<std::uint32_t>(coloring.hash().digits.size());
  addressing.of_number = coloring.patterns().of_number;
  addressing.of_free_bit = coloring.patterns().of_free_bit;
  RewrittenRange range;
  range.gpu = arena->gpu();
  range.base = arena->address();
  range.bytes = coloring.color_bytes(color);
  range.alignment = coloring.hash().unit_bytes();
  range.rewrite = [addressing](const ptx::Module& module, ptx::ColoredAccesses accesses) {
    return ptx::rewrite_remainders(module, addressing, accesses);
  };
  range.color = fmt::format("colour {} of {}", color, coloring.colors());
  range.account = arena->account();
  range.memory = std::move(arena);
  return make_rewritten_memory(std::move(range));
}

}  // namespace demarc::study
