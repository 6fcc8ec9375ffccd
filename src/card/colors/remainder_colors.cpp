// Finds the remainders of an arena's pages and cuts them into colours on one L2 side each.
#include "demarc/card/remainder_colors.hpp"

#include <algorithm>
#include <bit>
#include <map>

#include "colors/measuring.hpp"
#include "demarc/base/parallel.hpp"
#include "demarc/color/remainder_order.hpp"
#include "demarc/device/slice_model.hpp"

namespace demarc::cuda {
namespace {

constexpr std::uint32_t remainder_samples = 32;  // chunks measured of a page
constexpr std::uint64_t remainder_batch = 1024;  // pages measured in one go
constexpr int model_tries = 4;                   // before the model is given up

Result<std::vector<std::uint32_t>> sides_of(const gpu::Topology& topology,
                                            const std::vector<gpu::SmIndex>& sms) {
  if (!topology.sides_known()) {
    return missing_capability("colours by L2 side: the side of each TPC is not known; demarc topo");
  }
  std::map<gpu::SmIndex, std::uint32_t> side_of_sm;
  for (const gpu::Tpc& tpc : topology.tpcs) {
    for (const gpu::SmIndex sm : tpc.sms) side_of_sm[sm] = tpc.side.value_or(0);
  }
  std::vector<std::uint32_t> sides;
  sides.reserve(sms.size());
  for (const gpu::SmIndex sm : sms) sides.push_back(side_of_sm[sm]);
  return sides;
}

Result<color::RemainderModel> measure_model(const MemoryTimer& timer, const PageArena& arena,
                                            const std::vector<gpu::SmIndex>& sms,
                                            const color::RemainderHash& hash) {
  if (hash.page_bytes != arena.page_bytes()) {
    return invalid_input("remainders of pages of {} bytes on pages of {}", hash.page_bytes,
                         arena.page_bytes());
  }
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t at = 0; at < hash.page_bytes; at += std::uint64_t{1} << hash.chunk_shift) {
    offsets.push_back(at);
  }
  // What runs beside a measurement can spoil it.
  for (int left = model_tries;; --left) {
    DEMARC_TRY(const auto latencies, timer.hit_latencies(arena.address(), offsets, sms,
                                                         sms_measuring_together, hit_repeats));
    auto model = color::make_remainder_model(hash, latencies);
    if (model || left == 1) return model;
  }
}

Result<std::vector<color::PageRemainder>> measure_pages(const MemoryTimer& timer,
                                                        const PageArena& arena,
                                                        const std::vector<gpu::SmIndex>& sms,
                                                        const color::RemainderModel& model) {
  const auto samples = gpu::sample_offsets(
      model.hash.page_bytes, std::uint64_t{1} << model.hash.chunk_shift, remainder_samples);
  std::vector<color::PageRemainder> found(arena.pages());
  for (std::uint64_t first = 0; first < arena.pages(); first += remainder_batch) {
    const std::uint64_t count = std::min(remainder_batch, arena.pages() - first);
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t page = first; page < first + count; ++page) {
      for (const std::uint64_t at : samples) offsets.push_back(page * arena.page_bytes() + at);
    }
    DEMARC_TRY(const auto latencies, timer.hit_latencies(arena.address(), offsets, sms,
                                                         sms_measuring_together, hit_repeats));
    parallel_for(count, 0, [&](std::size_t i) {
      found[first + i] = color::find_page_remainder(model, samples, latencies, i * samples.size());
    });
  }
  return found;
}

std::size_t chunks_of(std::size_t bytes, const color::RemainderHash& hash) {
  return (bytes + (std::size_t{1} << hash.chunk_shift) - 1) >> hash.chunk_shift;
}

// How many chunks from `first` on are as wanted, `most` at most.
std::size_t run_of(const std::vector<bool>& chunks, std::size_t first, std::size_t most,
                   bool wanted) {
  const auto begin = chunks.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(most, chunks.size() - first));
  return static_cast<std::size_t>(std::find(begin, end, !wanted) - begin);
}

// The first block of so many free chunks, aligned to itself, that are all the colour's own.
std::optional<std::size_t> own_block(const std::vector<bool>& own, const std::vector<bool>& taken,
                                     std::size_t count) {
  for (std::size_t first = 0; first + count <= own.size(); first += count) {
    if (run_of(own, first, count, true) == count && run_of(taken, first, count, false) == count) {
      return first;
    }
  }
  return std::nullopt;
}

// So many free chunks of which as many as can be are the colour's own, from the first on. In front
// of them there is a chunk: what comes before the arena's first page reads there.
std::optional<std::size_t> best_run(const std::vector<bool>& own, const std::vector<bool>& taken,
                                    std::size_t count) {
  std::optional<std::size_t> best;
  std::size_t most = 0;
  for (std::size_t first = 1; first + count <= own.size(); ++first) {
    const std::size_t length = run_of(own, first, count, true);
    if ((best && length <= most) || run_of(taken, first, count, false) < count) continue;
    best = first;
    most = length;
  }
  return best;
}

}  // namespace

Result<RemainderColors> measure_remainders(const MemoryTimer& timer, PageArena& arena,
                                           const gpu::Topology& topology,
                                           const color::ColorScheme& scheme) {
  if (!scheme.remainders) return invalid_input("the colours of this card are no remainders");
  std::vector<gpu::SmIndex> sms = measuring_sms(*arena.gpu());
  DEMARC_TRY(const auto sides, sides_of(topology, sms));
  DEMARC_TRY(auto model, measure_model(timer, arena, sms, *scheme.remainders));
  DEMARC_TRY(const auto found, measure_pages(timer, arena, sms, model));
  auto order = color::order_by_remainder(model, found);
  const std::uint64_t taken = arena.pages();
  if (order.size() < 2 || order.size() * 2 < taken) {
    return check_failed("colours: only {} of {} pages follow each other in their remainders",
                        order.size(), taken);
  }
  const std::uint32_t aside = order.back();
  order.pop_back();
  std::vector<std::uint32_t> constants;
  constants.reserve(order.size());
  for (const std::uint32_t page : order) constants.push_back(found[page].constant);
  // As many pages in front as the first of a colour may be (color::RemainderSteps).
  DEMARC_CHECK(arena.arrange(order, {.in_front = model.hash.modulus, .behind = 1}, aside));
  DEMARC_TRY(auto windows, color::windows_by_side(color::sides_of_remainders(model, sides),
                                                  scheme.colors, scheme.paths));
  std::string text;
  for (const auto& window : windows) text += fmt::format(" {}+{}", window.first, window.count);
  DEMARC_TRY(auto coloring,
             color::RemainderColoring::make(model.hash, std::move(windows), constants));
  const std::vector<std::byte> content = coloring.table();
  DEMARC_TRY(DeviceBuffer table, DeviceBuffer::allocate(arena.gpu(), content.size()));
  DEMARC_CHECK(table.upload(content.data(), content.size()));
  std::string account = fmt::format(
      "{} of {} pages in the order of their remainders (modulo {}, {:.1f} % of a page's latencies "
      "explained), colours:{}",
      order.size(), taken, model.hash.modulus, 100 * model.agreement, text);
  return RemainderColors{std::move(sms),
                         std::move(model),
                         std::move(coloring),
                         found[aside].constant,
                         {},
                         std::make_shared<const DeviceBuffer>(std::move(table)),
                         std::move(account)};
}

Result<PlacedTables> place_tables(RemainderColors& colors, const PageArena& arena,
                                  color::RemainderColoring::Window window) {
  const color::RemainderHash& hash = colors.coloring.hash();
  const std::vector<bool> own =
      color::own_chunks(hash, window, arena.pages(), colors.aside_constant);
  std::vector<bool>& taken = colors.aside_taken;
  taken.resize(own.size());
  const std::vector<std::byte> table = colors.coloring.table();
  const auto put = [&](std::size_t chunk,
                       std::span<const std::byte> bytes) -> Result<std::uint32_t> {
    const std::size_t at = chunk << hash.chunk_shift;
    DEMARC_CHECK(arena.fill_aside(at, bytes));
    std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(chunk), chunks_of(bytes.size(), hash),
                true);
    return static_cast<std::uint32_t>(at);
  };
  const auto patterns = std::span(table).first(color::remainder_table_of_pages);
  const auto places = std::span(table).subspan(patterns.size() + hash.modulus);
  PlacedTables placed;
  if (const auto chunk = own_block(own, taken, chunks_of(patterns.size(), hash))) {
    DEMARC_TRY(placed.patterns, put(*chunk, patterns));
  }
  if (const auto chunk = best_run(own, taken, chunks_of(places.size(), hash))) {
    DEMARC_TRY(placed.places, put(*chunk, places));
  }
  return placed;
}

Result<color::RemainderColoring::Window> window_of_colors(const color::RemainderColoring& coloring,
                                                          const color::ColorSet& colors) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(colors.members()));
  const std::uint32_t count = colors.size();
  if (!colors.is_well_formed() || colors.of() != coloring.colors() ||
      colors != color::ColorSet::run(first, count, colors.of())) {
    return invalid_input(
        "colours {}: some of the {} colours that follow each other were expected, such as 0,1",
        to_string(colors), coloring.colors());
  }
  const std::uint32_t modulus = coloring.hash().modulus;
  const auto begin = coloring.window(first);
  const auto end = coloring.window(first + count - 1);
  const std::uint32_t length = (end.first + end.count + modulus - begin.first) % modulus;
  return color::RemainderColoring::Window{begin.first, length == 0 ? modulus : length};
}

colored_layout<remainders> layout_of_remainders(const color::RemainderSteps& steps,
                                                const color::SharePlace& place,
                                                color::LinearByte first) {
  colored_layout<remainders> layout;
  layout.base = place.arena.raw() -
                (std::uint64_t{steps.first_page} << (steps.chunk_shift + steps.page_shift));
  layout.first = (std::uint64_t{steps.begin} << steps.chunk_shift) + first.raw();
  layout.table = place.patterns.raw();
  layout.pages = place.places.raw() - steps.first_page;
  layout.chunk_shift = steps.chunk_shift;
  layout.page_shift = steps.page_shift;
  layout.pattern_bits = steps.pattern_bits;
  layout.end = steps.end;
  layout.reciprocal = steps.reciprocal;
  layout.reciprocal_shift = steps.reciprocal_shift;
  layout.skipped = steps.skipped;
  return layout;
}

}  // namespace demarc::cuda
