// Finds slices and page constants by latencies, and what they say about the address map.
#include "demarc/probe/slices.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <numeric>

#include "demarc/base/gf2.hpp"

namespace demarc::probe {
namespace {

// The same for the reference page and for every other one: the least of more repetitions is less.
constexpr std::uint32_t hit_repeats = 4;

// Evenly spread over the numbering, which follows the GPCs, alternating the two SMs of a TPC.
std::vector<gpu::SmIndex> spread_sms(std::uint32_t available, std::uint32_t wanted) {
  wanted = std::min(wanted, available);
  std::vector<gpu::SmIndex> sms;
  for (std::uint32_t i = 0; i < wanted; ++i) sms.emplace_back(i * available / wanted);
  return sms;
}

// What is below the lowest bit of all functions.
std::uint64_t longest_run(const gpu::AddressMap& map) {
  std::uint64_t bits = 0;
  for (const std::uint64_t row : map.module.rows) bits |= row;
  if (map.stack) {
    for (const std::uint64_t row : map.stack->number.rows) bits |= row;
  }
  return bits & (~bits + 1);
}

}  // namespace

gpu::AddressMap map_of_slices(const MemoryFacts& facts, const SliceFinding& finding) {
  gpu::AddressMap map;
  map.page_bytes = facts.page_bytes;
  map.address_bits = static_cast<std::uint32_t>(std::countr_zero(facts.page_bytes));
  if (!finding.decided) return map;
  map.module.rows = finding.model.masks;
  if (finding.remainders) {
    map.slices = finding.remainders->slices;
    map.stack = finding.remainders->stage;
  } else if (finding.model.clusters.sizes.size() == map.module.count()) {
    map.slices = map.module.count();  // the masks alone tell them apart
  }
  // Where not all functions are known, the chunk that was measured as one.
  map.interleave_bytes = map.slices != 0 ? longest_run(map) : finding.model.chunk_bytes;
  return map;
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
  const auto& model = finding.model;
  finding.remainders = find_remainders(model.clusters.cluster, model.masks, model.chunk_bytes);
  if (finding.remainders && model.masks.size() <= 1) {
    auto hash = color::remainder_hash(finding.remainders->stage,
                                      model.masks.empty() ? 0 : model.masks.front(),
                                      model.page_bytes, model.chunk_bytes);
    if (hash) {
      if (auto made = color::make_remainder_model(std::move(*hash), latencies)) {
        finding.remainder_model = std::move(*made);
      }
    }
  }
  const auto& clusters = model.clusters;
  finding.decided = clusters.sizes.size() > 1 && !model.masks.empty();
  finding.reason = fmt::format(
      "{} kinds of chunks by latency (noise {:.2f} cycles, nearest two {:.1f} times that apart), "
      "{} "
      "linear masks constant on them",
      clusters.sizes.size(), clusters.noise, clusters.separation, model.masks.size());
  report_progress(progress, 1, "slices");
  return finding;
}

Result<PageFinding> find_page_constants(TimedMemory& memory, const SliceFinding& slices,
                                        const SliceOptions& options, std::uint64_t pages,
                                        std::uint32_t samples, const Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  const auto& model = slices.model;
  const auto read = [&](std::span<const std::uint64_t> addresses) {
    return memory.hit_latencies(addresses, model.sms, options.together, hit_repeats);
  };
  DEMARC_TRY(const auto constants, gpu::find_page_constants(model, pages, samples, read, progress));
  PageFinding finding;
  finding.pages_per_constant.assign(std::size_t{1} << model.masks.size(), 0);
  for (const gpu::PageConstant& found : constants) {
    finding.constants.push_back(found.constant);
    ++finding.pages_per_constant[found.constant];
    if (!found.certain()) ++finding.uncertain;
  }
  finding.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return finding;
}

}  // namespace demarc::probe
