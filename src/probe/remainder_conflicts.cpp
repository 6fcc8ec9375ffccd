// Measures which remainders share a path to memory, by streams that disturb each other.
#include <algorithm>

#include "demarc/base/gf2.hpp"
#include "demarc/device/slice_model.hpp"
#include "demarc/probe/slices.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint32_t latency_repeats = 4;
constexpr std::uint32_t samples_a_page = 32;
constexpr std::uint64_t max_pages = 768;  // half of them the victim's
constexpr double shares_a_path = 1.6;     // slowdown from which on it is felt
constexpr std::uint32_t no_group = ~std::uint32_t{0};

// The chunks of every remainder, of two separate sets of pages.
struct ChunksByRemainder {
  std::vector<std::vector<std::uint32_t>> victim, aggressor;
};

Result<std::vector<color::PageRemainder>> measure_pages(TimedMemory& memory,
                                                        const color::RemainderModel& model,
                                                        const std::vector<gpu::SmIndex>& sms,
                                                        std::uint32_t together,
                                                        std::uint64_t pages) {
  const std::uint64_t page_bytes = memory.facts().page_bytes;
  const auto samples =
      gpu::sample_offsets(page_bytes, std::uint64_t{1} << model.hash.chunk_shift, samples_a_page);
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t page = 0; page < pages; ++page) {
    for (const std::uint64_t at : samples) addresses.push_back(page * page_bytes + at);
  }
  DEMARC_TRY(const auto latencies, memory.hit_latencies(addresses, sms, together, latency_repeats));
  std::vector<color::PageRemainder> found;
  for (std::uint64_t page = 0; page < pages; ++page) {
    found.push_back(color::find_page_remainder(model, samples, latencies, page * samples.size()));
  }
  return found;
}

ChunksByRemainder sort_chunks(const color::RemainderHash& hash,
                              std::span<const color::PageRemainder> pages) {
  ChunksByRemainder chunks;
  chunks.victim.resize(hash.modulus);
  chunks.aggressor.resize(hash.modulus);
  const std::uint64_t per_page = hash.page_bytes >> hash.chunk_shift;
  for (std::uint64_t page = 0; page < pages.size(); ++page) {
    auto& side = page < pages.size() / 2 ? chunks.victim : chunks.aggressor;
    for (std::uint64_t i = 0; i < per_page; ++i) {
      const std::uint32_t number = hash.number(i << hash.chunk_shift, pages[page].constant);
      side[(number + pages[page].remainder) % hash.modulus].push_back(
          static_cast<std::uint32_t>(page * per_page + i));
    }
  }
  return chunks;
}

}  // namespace

Result<RemainderConflicts> measure_remainder_conflicts(TimedMemory& memory,
                                                       const SliceFinding& slices,
                                                       const SliceOptions& options,
                                                       const Progress& progress) {
  const color::RemainderModel& model = *slices.remainder_model;
  const std::uint64_t page_count = std::min(max_pages, memory.facts().pages);
  DEMARC_TRY(const auto pages,
             measure_pages(memory, model, slices.model.sms, options.together, page_count));
  RemainderConflicts found;
  found.pages = static_cast<std::uint32_t>(pages.size());
  found.uncertain = static_cast<std::uint32_t>(
      std::count_if(pages.begin(), pages.end(),
                    [](const color::PageRemainder& page) { return page.agreement < 0.9; }));
  auto chunks = sort_chunks(model.hash, pages);
  const std::uint32_t modulus = model.hash.modulus;
  found.group_of.assign(modulus, no_group);
  for (std::uint32_t reader = 0; reader < modulus; ++reader) {
    if (found.group_of[reader] != no_group) continue;
    Stream victim;
    victim.chunk_shift = model.hash.chunk_shift;
    victim.chunks = chunks.victim[reader];
    DEMARC_TRY(const double alone, memory.stream_seconds(victim, {}));
    for (std::uint32_t writer = 0; writer < modulus; ++writer) {
      Stream aggressor = victim;
      aggressor.writes = true;
      aggressor.chunks = chunks.aggressor[writer];
      DEMARC_TRY(const double together, memory.stream_seconds(victim, aggressor));
      const double slowdown = together / alone;
      if (writer == reader || slowdown >= shares_a_path) {
        found.group_of[writer] = found.groups;
        found.least_same = found.least_same == 0 ? slowdown : std::min(found.least_same, slowdown);
      } else {
        found.max_other = std::max(found.max_other, slowdown);
      }
    }
    ++found.groups;
    report_progress(progress, static_cast<double>(reader + 1) / modulus,
                    "conflicts: remainders that share a path");
  }
  return found;
}

}  // namespace demarc::probe
