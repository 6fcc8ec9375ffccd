#include "demarc/probe/slices.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <numeric>

#include "demarc/base/gf2.hpp"

namespace demarc::probe {
namespace {

// The same for the reference page and for every other one: the least of more repetitions is less.
constexpr std::uint32_t hit_repeats = 4;

// Evenly spread over the numbering, which follows the GPCs, alternating the two SMs of a TPC.
std::vector<std::uint32_t> spread_sms(std::uint32_t available, std::uint32_t wanted) {
  wanted = std::min(wanted, available);
  std::vector<std::uint32_t> sms;
  for (std::uint32_t i = 0; i < wanted; ++i) sms.push_back(i * available / wanted);
  return sms;
}

}  // namespace

ModuloTest find_modulo_stage(const gpu::SliceModel& model) {
  const gpu::LinearHash module{model.masks};
  const auto& cluster = model.clusters.cluster;
  const auto clusters = static_cast<std::uint32_t>(model.clusters.sizes.size());
  const auto purity = [&](unsigned shift, std::uint32_t modulus) {
    // How often the most frequent slice of each (module, remainder) occurs.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> counts;
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      const std::uint64_t offset = i * model.chunk_bytes;
      auto& count =
          counts[{module(offset), static_cast<std::uint32_t>((offset >> shift) % modulus)}];
      if (count.empty()) count.assign(clusters, 0);
      ++count[cluster[i]];
    }
    std::uint64_t most = 0;
    for (const auto& [key, count] : counts) most += *std::max_element(count.begin(), count.end());
    return static_cast<double>(most) / static_cast<double>(cluster.size());
  };
  ModuloTest best;
  if (cluster.empty()) return best;
  best.chance = purity(0, 1);
  best.purity = best.chance;
  const auto first = static_cast<unsigned>(std::countr_zero(model.chunk_bytes));
  const auto last = static_cast<unsigned>(std::countr_zero(model.page_bytes));
  for (const std::uint32_t modulus : {3U, 5U, 6U, 7U, 9U, 10U, 11U, 12U, 13U, 15U}) {
    for (unsigned shift = first; shift + 3 < last; ++shift) {
      const double found = purity(shift, modulus);
      if (found > best.purity) {
        best.shift = shift;
        best.modulus = modulus;
        best.purity = found;
      }
    }
  }
  return best;
}

Result<SliceFinding> find_slices(TimedMemory& memory, const SliceOptions& options,
                                 const Progress& progress) {
  const MemoryFacts& facts = memory.facts();
  const auto sms = spread_sms(facts.sms, options.sms);
  std::vector<std::uint64_t> offsets(facts.page_bytes / options.chunk_bytes);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * options.chunk_bytes;
  report_progress(progress, 0, "slices: latencies of one page");
  DEMARC_TRY(const gpu::LatencyMatrix latencies,
             memory.hit_latencies(offsets, sms, options.together, hit_repeats));
  report_progress(progress, 0.5, "slices: clustering");
  SliceFinding finding;
  finding.model = gpu::make_slice_model(latencies, facts.page_bytes, sms);
  finding.modulo = find_modulo_stage(finding.model);
  constexpr double clear_purity = 0.95;
  finding.modulo_found = finding.modulo.purity >= clear_purity && finding.modulo.modulus > 1;
  const auto& clusters = finding.model.clusters;
  finding.decided = clusters.sizes.size() > 1 && !finding.model.masks.empty();
  finding.reason = fmt::format(
      "{} kinds of chunks by latency (noise {:.2f} cycles, nearest two {:.1f} times that apart), "
      "{} "
      "linear masks constant on them",
      clusters.sizes.size(), clusters.noise, clusters.separation, finding.model.masks.size());
  report_progress(progress, 1, "slices");
  return finding;
}

Result<PageFinding> find_page_constants(TimedMemory& memory, const SliceFinding& slices,
                                        const SliceOptions& options, std::uint64_t pages,
                                        std::uint32_t samples, const Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const MemoryFacts& facts = memory.facts();
  const auto& model = slices.model;
  const auto offsets = gpu::sample_offsets(facts.page_bytes, model.chunk_bytes, samples);
  PageFinding finding;
  finding.pages_per_constant.assign(std::size_t{1} << model.masks.size(), 0);
  constexpr std::uint64_t batch = 2048;
  for (std::uint64_t first = 0; first < pages; first += batch) {
    const std::uint64_t count = std::min(batch, pages - first);
    std::vector<std::uint64_t> addresses;
    addresses.reserve(count * samples);
    for (std::uint64_t page = first; page < first + count; ++page) {
      for (const auto offset : offsets) addresses.push_back(page * facts.page_bytes + offset);
    }
    DEMARC_TRY(const gpu::LatencyMatrix latencies,
               memory.hit_latencies(addresses, model.sms, options.together, hit_repeats));
    for (std::uint64_t page = 0; page < count; ++page) {
      const auto found = model.page_constant(offsets, latencies, page * samples);
      finding.constants.push_back(found.constant);
      ++finding.pages_per_constant[found.constant];
      if (found.agreement < 0.9) ++finding.uncertain;
    }
    report_progress(progress, static_cast<double>(first + count) / static_cast<double>(pages),
                    "page constants");
  }
  finding.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return finding;
}

}  // namespace demarc::probe
