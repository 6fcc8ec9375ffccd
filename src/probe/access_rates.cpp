// Measures rates of many SMs, and whether the L2 keeps lines of memory that lies elsewhere.
#include "demarc/probe/access_rates.hpp"

#include <algorithm>
#include <array>

#include "page_walks.hpp"

namespace demarc::probe {
namespace {

constexpr double full_rate = 0.9;           // rate of the highest: as fast as any
constexpr std::uint64_t least_walked = 64;  // pages; every TLB holds these
// Footprint of the tables: within the reach of TLBs, beyond caches.
constexpr std::uint64_t table_bytes = std::uint64_t{256} << 20U;
constexpr std::uint32_t sm_table_access = 512;
constexpr std::array<std::uint32_t, 6> access_sizes = {32, 64, 128, 256, 512, 4096};
constexpr std::uint64_t caching_pages = 16;
constexpr std::uint64_t caching_lines = 128;  // lines of each of them
// How near to a hit in its own L2 a second access is, from the first one on: kept there, or not.
constexpr double surely_kept = 0.75;
constexpr double surely_not_kept = 0.5;

std::uint64_t table_pages(const TimedPages& memory) {
  return std::clamp<std::uint64_t>(table_bytes / memory.page_bytes(), 1, memory.pages());
}

Result<void> add(TimedPages& memory, const Traffic& traffic, std::vector<AccessRate>& rates) {
  DEMARC_TRY(const double rate, memory.accesses_per_second(traffic));
  rates.push_back({traffic, rate});
  return {};
}

}  // namespace

Result<WalkFinding> find_walk_rate(TimedPages& memory, std::uint32_t sms, std::uint64_t max_lines,
                                   const Progress& progress) {
  WalkFinding found;
  const auto grid = footprints(least_walked, std::min(memory.pages(), max_lines));
  double highest = 0;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    report_progress(progress, static_cast<double>(i) / static_cast<double>(grid.size()),
                    "random pages from all SMs");
    DEMARC_CHECK(add(memory, {Traffic::Kind::page, 4, sms, grid[i]}, found.rates));
    highest = std::max(highest, found.rates.back().accesses_per_second);
  }
  // TLBs that hold as many pages as the first footprint that is read slower would not slow it.
  std::uint64_t held_below = 0;
  for (const AccessRate& rate : found.rates) {
    const bool fast = rate.accesses_per_second >= full_rate * highest;
    if (fast) found.reach_pages = rate.traffic.pages;
    if (fast) held_below = 0;
    if (!fast && held_below == 0) held_below = rate.traffic.pages;
  }
  if (held_below == 0) {
    found.reason = "the rate does not fall with the number of pages, so no page walks were seen";
    return found;
  }
  const AccessRate& last = found.rates.back();
  const double missing =
      1 - static_cast<double>(held_below) / static_cast<double>(last.traffic.pages);
  if (missing <= 0) {
    found.reason =
        "the rate falls only at the largest footprint, so the share that misses is unknown";
    return found;
  }
  found.walks_per_second = missing * last.accesses_per_second;
  found.reason = fmt::format(
      "{:.2f} G reads/s of {} random pages; at least {:.0f} % of them miss, because {} pages are "
      "read more slowly already",
      last.accesses_per_second * 1e-9, last.traffic.pages, missing * 100, held_below);
  return found;
}

Result<RateTable> measure_rates(TimedPages& memory, std::uint32_t sms, const Progress& progress) {
  RateTable table;
  const std::uint64_t pages = table_pages(memory);
  for (const auto kind : {Traffic::Kind::read, Traffic::Kind::write}) {
    report_progress(progress, kind == Traffic::Kind::read ? 0 : 0.3, "bandwidth by access size");
    for (const std::uint32_t bytes : access_sizes) {
      DEMARC_CHECK(add(memory, {kind, bytes, sms, pages}, table.by_size));
    }
  }
  report_progress(progress, 0.6, "bandwidth by number of SMs");
  for (std::uint32_t n = 1; n < sms; n *= 2) {
    DEMARC_CHECK(add(memory, {Traffic::Kind::read, sm_table_access, n, pages}, table.by_sms));
  }
  DEMARC_CHECK(add(memory, {Traffic::Kind::read, sm_table_access, sms, pages}, table.by_sms));
  table.no_atomics = memory.no_atomics();
  if (!table.no_atomics.empty()) return table;
  report_progress(progress, 0.9, "atomics");
  for (const auto kind : {Traffic::Kind::atomic, Traffic::Kind::word}) {
    DEMARC_CHECK(add(memory, {kind, 4, sms, pages}, table.atomics));
  }
  return table;
}

Result<CachingFinding> find_caching(TimedPages& memory, double own_hit_cycles, Random& random) {
  const std::uint64_t lines = memory.page_bytes() / line_bytes;
  const std::uint64_t pages = std::min(caching_pages, memory.pages());
  // Page by page, so that the translation is missed once for many lines.
  std::vector<Visit> visits;
  for (std::uint64_t page = 0; page < pages; ++page) {
    const std::uint64_t first = random.below(lines);
    const std::uint64_t stride = random.below(lines) | 1U;
    for (std::uint64_t i = 0; i < std::min(caching_lines, lines); ++i) {
      visits.push_back({PageIndex(page), LineIndex((first + i * stride) % lines)});
    }
  }
  CachingFinding found;
  DEMARC_TRY(const WalkCycles loads, memory.walk(visits, Access::load, Before::evicted));
  found.first_cycles = loads.first;
  found.again_cycles = loads.again;
  if (memory.no_atomics().empty()) {
    DEMARC_TRY(const WalkCycles atomics, memory.walk(visits, Access::atomic, Before::whatever));
    found.atomic_cycles = atomics.again;
  }
  if (own_hit_cycles <= 0 || found.first_cycles < 1.2 * own_hit_cycles) {
    found.reason = own_hit_cycles <= 0 ? "the latency of the card's own L2 is not known"
                                       : "a first access takes no longer than one to its own L2";
    return found;
  }
  const double nearer =
      (found.first_cycles - found.again_cycles) / (found.first_cycles - own_hit_cycles);
  found.reason = fmt::format(
      "a second access takes {:.0f} cycles, a first one {:.0f}, a hit in the "
      "card's own L2 {:.0f}",
      found.again_cycles, found.first_cycles, own_hit_cycles);
  if (nearer >= surely_kept) found.kept_in_own_l2 = true;
  if (nearer <= surely_not_kept) found.kept_in_own_l2 = false;
  return found;
}

}  // namespace demarc::probe
