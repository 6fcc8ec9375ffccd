// Chooses the lines that a walk over pages visits, and searches for the number of pages that a
// level holds.
#include "page_walks.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace demarc::probe {
namespace {

constexpr double points_per_octave = 4;
constexpr std::uint64_t group_pages = 256;     // that an entry covers at most
constexpr std::uint64_t window_bytes = 65536;  // the least page of a probe
// A search ends within so many parts of what it found.
constexpr std::uint64_t search_parts = 32;

void shuffle(std::vector<std::uint64_t>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace

std::vector<std::uint64_t> footprints(std::uint64_t least, std::uint64_t most) {
  std::vector<std::uint64_t> pages;
  for (auto at = static_cast<double>(least); at < static_cast<double>(most);
       at *= std::exp2(1 / points_per_octave)) {
    const auto rounded = static_cast<std::uint64_t>(std::llround(at));
    if (pages.empty() || rounded > pages.back()) pages.push_back(rounded);
  }
  if (pages.empty() || pages.back() < most) pages.push_back(most);
  return pages;
}

std::uint64_t PageWalks::most(std::uint64_t apart) const {
  return std::min(memory_.pages() / apart, options_.max_lines);
}

// Pages of a group share an entry, if any do. So one page of each group comes before the next page
// of any, groups always in the same order, and pages in the order of their numbers with the bits
// turned round: whatever part of a group an entry covers, it comes back as late as it can.
std::vector<std::uint64_t> PageWalks::order(std::uint64_t pages) const {
  std::vector<std::uint64_t> groups(ceil_div(pages, group_pages));
  std::iota(groups.begin(), groups.end(), std::uint64_t{0});
  shuffle(groups, random_);
  std::vector<std::uint64_t> ordered;
  ordered.reserve(pages);
  for (std::uint64_t i = 0; i < group_pages; ++i) {
    std::uint64_t turned = 0;
    for (std::uint64_t bit = 1; bit < group_pages; bit *= 2) {
      turned = turned * 2 + ((i & bit) != 0 ? 1 : 0);
    }
    for (const std::uint64_t group : groups) {
      const std::uint64_t page = group * group_pages + turned;
      if (page < pages) ordered.push_back(page);
    }
  }
  return ordered;
}

// All pages once, then again in the same order at another line of each, until there are enough
// lines. Those of a page lie within a window of it, at random: a TLB need not hold whole pages.
std::vector<Visit> PageWalks::visits(std::uint64_t pages, std::uint64_t apart,
                                     Layout layout) const {
  std::vector<std::uint64_t> places = order(pages);
  for (std::uint64_t& page : places) {
    page = page * apart + (layout == Layout::scattered ? random_.below(apart) : 0);
  }
  const std::uint64_t window = window_bytes / line_bytes;
  const std::uint64_t windows = std::max<std::uint64_t>(memory_.page_bytes() / window_bytes, 1);
  const std::uint64_t rounds =
      std::clamp<std::uint64_t>(ceil_div(options_.least_visits, pages), 1, window);
  // Odd: all lines of a window come before one comes again.
  const std::uint64_t stride = random_.below(window) | 1U;
  struct Start {
    std::uint64_t window, line;
  };
  std::vector<Start> starts(pages);
  for (Start& start : starts) start = {random_.below(windows) * window, random_.below(window)};
  std::vector<Visit> visited;
  visited.reserve(pages * rounds);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::uint64_t line = (starts[i].line + round * stride) % window;
      visited.push_back({PageIndex(places[i]), LineIndex(starts[i].window + line)});
    }
  }
  return visited;
}

Result<CurvePoint> PageWalks::measure(std::uint64_t pages, std::uint64_t apart,
                                      Layout layout) const {
  std::vector<double> cycles;
  for (std::uint32_t repeat = 0; repeat < std::max(options_.repeats, 1U); ++repeat) {
    DEMARC_TRY(const WalkCycles walked,
               memory_.walk(visits(pages, apart, layout), Access::load, Before::whatever));
    cycles.push_back(walked.again);
  }
  std::sort(cycles.begin(), cycles.end());
  return CurvePoint{pages, cycles[cycles.size() / 2], cycles.back() - cycles.front()};
}

Result<std::optional<std::uint64_t>> max_within(const PageWalks& walks, std::uint64_t apart,
                                                Layout layout, double cycles, std::uint64_t bound) {
  const std::uint64_t most = std::min(walks.most(apart), bound);
  if (most == 0) return std::optional<std::uint64_t>();
  DEMARC_TRY(const CurvePoint all, walks.measure(most, apart, layout));
  if (all.cycles <= cycles) return std::optional<std::uint64_t>();
  std::uint64_t within = 0;
  std::uint64_t beyond = most;
  while (beyond - within > std::max<std::uint64_t>(within / search_parts, 1)) {
    // Halfway between their logarithms, near enough.
    std::uint64_t middle = within == 0 ? beyond / 4 : within + (beyond - within) / 2;
    if (beyond > 4 * within) middle = std::max(within + 1, beyond / 4);
    middle = std::clamp(middle, within + 1, beyond - 1);
    DEMARC_TRY(const CurvePoint point, walks.measure(middle, apart, layout));
    (point.cycles <= cycles ? within : beyond) = middle;
  }
  return std::optional<std::uint64_t>(within);
}

}  // namespace demarc::probe
