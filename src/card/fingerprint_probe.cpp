// Measures how far each SM of a process is from the chunks of a page.
#include <algorithm>
#include <numeric>

#include "demarc/card/fingerprints.hpp"
#include "demarc/card/page_arena.hpp"
#include "demarc/device/slice_model.hpp"

namespace demarc::cuda {
namespace {

// Eight chunks or more of each of 94 slices; 0.65 s for 132 SMs.
constexpr std::uint32_t fingerprint_chunks = 2048;
constexpr std::uint32_t fingerprint_repeats = 16;
constexpr std::uint32_t fingerprint_sms_together = 8;

// Columns in ascending order of their SM numbers.
LaunchLatencies by_number(const LaunchLatencies& launch) {
  std::vector<std::size_t> order(launch.sms.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return launch.sms[a] < launch.sms[b]; });
  LaunchLatencies sorted;
  sorted.latencies.dimensions = launch.latencies.dimensions;
  for (const std::size_t column : order) sorted.sms.push_back(launch.sms[column]);
  for (std::size_t i = 0; i < launch.latencies.count(); ++i) {
    const auto row = launch.latencies.row(i);
    for (const std::size_t column : order) sorted.latencies.values.push_back(row[column]);
  }
  return sorted;
}

}  // namespace

Result<Fingerprints> measure_fingerprints(const MemoryTimer& timer, const gpu::AddressMap& map,
                                          std::uint32_t rounds) {
  DEMARC_TRY(const PageArena arena, PageArena::create(timer.gpu(), 1));
  if (arena.page_bytes() != map.page_bytes) {
    return missing_capability("fingerprints: pages have {} bytes here, but {} in the address hash",
                              arena.page_bytes(), map.page_bytes);
  }
  const auto offsets =
      gpu::sample_offsets(map.page_bytes, map.interleave_bytes, fingerprint_chunks);
  LaunchLatencies all;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    DEMARC_TRY(const LaunchLatencies raw,
               timer.launch_latencies(arena.address(), offsets, fingerprint_sms_together,
                                      fingerprint_repeats));
    LaunchLatencies launch = by_number(raw);
    if (round == 0) {
      all = std::move(launch);
      continue;
    }
    if (launch.sms != all.sms) {
      return check_failed("fingerprints: launches got {} and {} SMs: is the card shared?",
                          all.sms.size(), launch.sms.size());
    }
    for (std::size_t i = 0; i < all.latencies.values.size(); ++i) {
      all.latencies.values[i] += launch.latencies.values[i];
    }
  }
  for (float& value : all.latencies.values) value /= static_cast<float>(rounds);
  return make_fingerprints(map, offsets, all.latencies, std::move(all.sms));
}

}  // namespace demarc::cuda
