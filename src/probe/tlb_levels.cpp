// Finds levels of TLBs: measures the curve over the number of pages, then narrows down the reach of
// each level.
#include "demarc/probe/tlb_levels.hpp"

#include <algorithm>

#include "page_walks.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint64_t fewest_walked = 4;  // pages: of fewer, too few lines would be visited
constexpr std::uint64_t reach_parts = 64;   // a reach is closed in to such a part of itself

// The most pages at which a tenth of the cost is not paid, or what noise may hide of it.
Result<std::uint64_t> close_in(const PageWalks& walks, const LatencyStep& step, double noise) {
  const double most = step.cycles_before + std::max(0.1 * step.cost(), 2 * noise);
  std::uint64_t within = step.begin_pages;
  std::uint64_t beyond = step.after_pages;
  while (beyond - within > std::max<std::uint64_t>(within / reach_parts, 1)) {
    const std::uint64_t middle = within + (beyond - within) / 2;
    DEMARC_TRY(const CurvePoint point, walks.measure(middle, 1, Layout::in_order));
    (point.cycles <= most ? within : beyond) = middle;
  }
  return within;
}

}  // namespace

Result<LevelFinding> find_tlb_levels(TimedPages& memory, const LevelOptions& options,
                                     Random& random, const Progress& progress) {
  const PageWalks walks(memory, options, random);
  LevelFinding found;
  const auto grid = footprints(fewest_walked, walks.most(1));
  for (std::size_t i = 0; i < grid.size(); ++i) {
    report_progress(progress, 0.7 * static_cast<double>(i) / static_cast<double>(grid.size()),
                    "latency over the number of pages");
    DEMARC_TRY(const CurvePoint point, walks.measure(grid[i], 1, Layout::in_order));
    found.curve.push_back(point);
  }
  found.steps = find_steps(found.curve, options.least_cost);
  for (const LatencyStep& step : found.steps.steps) {
    report_progress(progress, 0.8, "reach and entries of a level");
    TlbLevel level;
    DEMARC_TRY(level.reach_pages, close_in(walks, step, found.steps.noise_cycles));
    level.full_pages = step.end_pages;
    level.hit_cycles = step.cycles_before;
    level.miss_cycles = step.cost();
    level.miss_at_least = !step.to_level;
    level.sharp = step.end_pages == step.after_pages;
    if (options.entries) {
      const TlbLevel* const before = found.levels.empty() ? nullptr : &found.levels.back();
      DEMARC_CHECK(describe_entries(walks, before, level));
    }
    found.levels.push_back(std::move(level));
  }
  return found;
}

}  // namespace demarc::probe
