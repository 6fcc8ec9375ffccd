// Measures which masks keep two streams apart, and which pairs of modules disturb each other.
#include <algorithm>
#include <bit>

#include "demarc/color/color_scheme.hpp"
#include "demarc/color/coloring.hpp"
#include "demarc/probe/slices.hpp"

namespace demarc::probe {
namespace {

// Chunks of an arena by the value of a few masks.
class ChunkChooser {
 public:
  ChunkChooser(const MemoryFacts& facts, const SliceFinding& slices, const PageFinding& pages)
      : facts_(&facts), slices_(&slices), pages_(&pages) {}

  // `bytes` of chunks on which `coloring` gives `color`, from page `first` on. Pages that hold
  // fewer are refused: an aggressor without memory disturbs nothing.
  [[nodiscard]] Result<std::vector<std::uint32_t>> choose(const color::Coloring& coloring,
                                                          std::uint32_t color, std::uint64_t bytes,
                                                          std::uint64_t first,
                                                          unsigned shift) const {
    std::vector<std::uint32_t> chunks;
    const std::size_t wanted = bytes >> shift;
    const std::uint64_t per_page = facts_->page_bytes >> shift;
    for (std::uint64_t page = first; page < pages_->constants.size() && chunks.size() < wanted;
         ++page) {
      const auto constant =
          coloring.constant_from_rows(slices_->model.masks, pages_->constants[page]).value();
      for (std::uint64_t chunk = 0; chunk < per_page && chunks.size() < wanted; ++chunk) {
        if (coloring.color(color::ArenaByte(chunk << shift), constant) == color) {
          chunks.push_back(static_cast<std::uint32_t>(page * per_page + chunk));
        }
      }
    }
    if (chunks.size() < wanted) {
      return missing_capability(
          "{}: {} pages are too few: from page {} on they hold {} of the {} KiB of one colour that "
          "a "
          "stream needs; give the probe more memory",
          facts_->name, pages_->constants.size(), first, chunks.size() << shift >> 10U,
          bytes >> 10U);
    }
    return chunks;
  }

 private:
  const MemoryFacts* facts_;
  const SliceFinding* slices_;
  const PageFinding* pages_;
};

unsigned shift_of(std::span<const std::uint64_t> masks) {
  unsigned lowest = 14;
  for (const auto mask : masks) {
    lowest = std::min(lowest, static_cast<unsigned>(std::countr_zero(mask)));
  }
  return lowest;
}

Result<double> median_seconds(TimedMemory& memory, const Stream& victim, const Stream& aggressor) {
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    DEMARC_TRY(const double seconds, memory.stream_seconds(victim, aggressor));
    times.push_back(seconds);
  }
  std::sort(times.begin(), times.end());
  return times[1];
}

// Slowdowns of a victim of colour 0 next to aggressors of colour `color`.
Result<gpu::MaskIsolation> slowdowns(TimedMemory& memory, const ChunkChooser& chooser,
                                     const color::Coloring& coloring, std::uint32_t color,
                                     std::uint64_t dram_bytes) {
  const unsigned shift = shift_of(coloring.masks());
  const std::uint64_t page_bytes = memory.facts().page_bytes;
  const std::uint64_t victim_pages = dram_bytes * coloring.colors() / page_bytes + 8;
  Stream dram;
  dram.chunk_shift = shift;
  DEMARC_TRY(dram.chunks, chooser.choose(coloring, 0, dram_bytes, 0, shift));
  Stream cached = dram;
  cached.chunks.resize(
      std::min<std::size_t>(cached.chunks.size(), (memory.facts().l2_bytes / 6) >> shift));
  Stream aggressor = dram;
  DEMARC_TRY(aggressor.chunks, chooser.choose(coloring, color, dram_bytes, victim_pages, shift));
  gpu::MaskIsolation result;
  for (const bool in_cache : {false, true}) {
    const Stream& victim = in_cache ? cached : dram;
    DEMARC_TRY(const double alone, median_seconds(memory, victim, {}));
    for (const bool writes : {false, true}) {
      aggressor.writes = writes;
      DEMARC_TRY(const double together, median_seconds(memory, victim, aggressor));
      double& entry = in_cache ? (writes ? result.l2_write : result.l2_read)
                               : (writes ? result.dram_write : result.dram_read);
      entry = together / alone;
    }
  }
  return result;
}

}  // namespace

Result<ConflictFinding> measure_conflicts(TimedMemory& memory, const SliceFinding& slices,
                                          const PageFinding& pages, const ConflictOptions& options,
                                          const Progress& progress) {
  const MemoryFacts& facts = memory.facts();
  const ChunkChooser chooser(facts, slices, pages);
  ConflictFinding finding;
  auto basis = slices.model.masks;
  // Streams work on runs of at least 512 bytes.
  std::erase_if(basis, [](std::uint64_t mask) { return (mask & 511U) != 0; });
  if (basis.size() > 5) basis.resize(5);
  const auto sums = color::mask_sums(basis);
  double done = 0;
  const double work = static_cast<double>(sums.size()) * (basis.size() <= 4 ? 2 : 1);
  for (const auto mask : sums) {
    DEMARC_TRY(const color::Coloring coloring,
               color::Coloring::make(std::span(&mask, 1), facts.page_bytes));
    MaskConflict conflict;
    DEMARC_TRY(conflict.other, slowdowns(memory, chooser, coloring, 1, options.dram_bytes));
    DEMARC_TRY(conflict.same, slowdowns(memory, chooser, coloring, 0, options.dram_bytes));
    conflict.other.mask = mask;
    conflict.same.mask = mask;
    const auto& other = conflict.other;
    conflict.isolates_dram = other.dram_read <= options.max_isolated;
    conflict.isolates = conflict.isolates_dram && other.dram_write <= options.max_isolated &&
                        other.l2_read <= options.max_isolated &&
                        other.l2_write <= options.max_isolated;
    finding.masks.push_back(conflict);
    report_progress(progress, ++done / work, "conflicts: one mask at a time");
  }
  std::vector<gpu::MaskIsolation> measured;
  for (const MaskConflict& entry : finding.masks) measured.push_back(entry.other);
  finding.isolating = color::isolating_masks(measured, color::Traffic::all, options.max_isolated);
  finding.isolating_dram =
      color::isolating_masks(measured, color::Traffic::dram_reads, options.max_isolated);

  if (basis.empty() || basis.size() > 4) return finding;
  DEMARC_TRY(const color::Coloring modules, color::Coloring::make(basis, facts.page_bytes));
  const unsigned shift = shift_of(basis);
  const std::uint64_t bytes = options.dram_bytes / 2;
  const std::uint64_t apart = bytes * modules.colors() / facts.page_bytes + 8;
  std::vector<std::vector<std::uint32_t>> others;
  for (std::uint32_t j = 0; j < modules.colors(); ++j) {
    DEMARC_TRY(auto chunks, chooser.choose(modules, j, bytes, apart, shift));
    others.push_back(std::move(chunks));
  }
  for (std::uint32_t i = 0; i < modules.colors(); ++i) {
    Stream victim;
    victim.chunk_shift = shift;
    DEMARC_TRY(victim.chunks, chooser.choose(modules, i, bytes, 0, shift));
    DEMARC_TRY(const double alone, memory.stream_seconds(victim, {}));
    std::vector<double> row;
    for (std::uint32_t j = 0; j < modules.colors(); ++j) {
      Stream aggressor = victim;
      aggressor.chunks = others[j];
      DEMARC_TRY(const double together, memory.stream_seconds(victim, aggressor));
      row.push_back(together / alone);
    }
    finding.modules.push_back(std::move(row));
    report_progress(
        progress,
        std::min(1.0, (done += static_cast<double>(sums.size()) / modules.colors()) / work),
        "conflicts: every pair of modules");
  }
  return finding;
}

}  // namespace demarc::probe
