// Turns runs and the loops around them into boxes of a grid of places.
#include "maps/boxes.hpp"
#include "demarc/base/rounding.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace demarc::locality {

BoxMaker::BoxMaker(const AccessRuns& runs, Granularity granularity)
    : runs_(runs), places_(places_of(runs, granularity)) {
  std::vector<std::uint64_t> bases;
  for (const Places& places : places_) bases.push_back(places.base);
  std::sort(bases.begin(), bases.end());
  bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
  for (const Places& places : places_)
    cluster_.push_back(static_cast<std::size_t>(
        std::lower_bound(bases.begin(), bases.end(), places.base) - bases.begin()));
  grids_.resize(bases.size());
  choose_grids();
}

// Pitches that divide each other. Strides that are none are gone through one by one, so those that
// would cost most come first.
void BoxMaker::choose_grids() {
  std::vector<std::map<std::uint64_t, std::uint64_t>> costs(grids_.size());  // by stride
  for (const Run& run : runs_.runs) {
    Grid& grid = grids_[cluster_[run.access]];
    progressions_of(run, runs_.loop_of(run));
    for (const Progression& progression : progressions_) {
      grid.origin = std::min(grid.origin, progression.lo);
      for (const Dimension& dimension : progression.dimensions)
        if (dimension.count > 1 && dimension.stride > 1)
          costs[cluster_[run.access]][dimension.stride] += dimension.count;
    }
  }
  for (std::size_t c = 0; c < grids_.size(); ++c) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> by_cost;
    for (const auto& [stride, cost] : costs[c]) by_cost.emplace_back(cost, stride);
    std::sort(by_cost.rbegin(), by_cost.rend());
    Grid& grid = grids_[c];
    for (const auto& [cost, stride] : by_cost) {
      if (grid.levels == max_levels) break;
      bool fits = true;
      for (std::size_t l = 0; l < grid.levels; ++l)
        fits = fits && (stride % grid.pitch[l] == 0 || grid.pitch[l] % stride == 0);
      if (!fits) continue;
      grid.pitch[grid.levels++] = stride;
      std::sort(grid.pitch.begin(), grid.pitch.begin() + static_cast<std::ptrdiff_t>(grid.levels));
    }
  }
}

void BoxMaker::progressions_of(const Run& run, Loop loop) {
  progressions_.clear();
  const std::uint64_t unit = places_[run.access].unit;
  std::uint64_t repeats = 1;
  if (loop.stride == 0) {
    repeats = loop.trips;
    loop.trips = 1;
  }
  Run lowest = run;
  auto stride = static_cast<std::uint64_t>(loop.stride);
  if (loop.stride < 0) {
    lowest.address += stride * (loop.trips - 1);
    stride = 0 - stride;
  }
  if (loop.trips == 1 || stride % unit == 0) {
    progressions_of_lanes(lowest, {stride / unit, loop.trips, false}, repeats);
    return;
  }
  const auto lane_stride = static_cast<std::uint64_t>(run.stride < 0 ? -run.stride : run.stride);
  const bool same_in_place = run.count == 1 || lane_stride % unit == 0;
  if (same_in_place && unit % stride == 0) {
    // Several trips in one place; lanes lie whole places apart.
    if (run.stride < 0) lowest.address += static_cast<std::uint64_t>(run.stride) * (run.count - 1);
    Run trips = lowest;
    trips.stride = static_cast<std::int64_t>(stride);
    trips.count = loop.trips;
    const bool apart = run.count > 1 && lane_stride > 0;
    for_each_interval(trips, places_[run.access], [&](const Interval& interval) {
      Progression one;
      one.lo = interval.lo;
      one.dimensions[0] = {1, interval.length, false};
      if (apart) one.dimensions[1] = {lane_stride / unit, run.count, true};
      one.trips = interval.width;
      one.width = apart ? 1 : run.count;
      one.reversed = run.stride < 0;
      progressions_.push_back(one);
    });
    return;
  }
  // Trips whose addresses lie whole places apart, together.
  const std::uint64_t period = unit / std::gcd(unit, stride);
  for (std::uint64_t phase = 0; phase < std::min<std::uint64_t>(period, loop.trips); ++phase) {
    Run part = lowest;
    part.address += stride * phase;
    progressions_of_lanes(part,
                          {stride * period / unit, ceil_div(loop.trips - phase, period), false}, 1);
  }
}

void BoxMaker::progressions_of_lanes(const Run& run, const Dimension& trips,
                                     std::uint64_t repeats) {
  const Places& places = places_[run.access];
  const auto stride = static_cast<std::uint64_t>(run.stride < 0 ? -run.stride : run.stride);
  Progression one;
  one.dimensions[1] = trips;
  one.trips = repeats;
  if (run.count > 1 && stride > places.unit && stride % places.unit == 0) {
    const std::uint64_t low = run.stride < 0 ? run.address - stride * (run.count - 1) : run.address;
    one.lo = low / places.unit + places.base;
    one.dimensions[0] = {stride / places.unit, run.count, true};
    one.reversed = run.stride < 0;
    progressions_.push_back(one);
    return;
  }
  for_each_interval(run, places, [&](const Interval& interval) {
    one.lo = interval.lo;
    one.dimensions[0] = {1, interval.length, true};
    one.first = interval.first;
    one.width = interval.width;
    one.reversed = interval.reversed;
    progressions_.push_back(one);
  });
}

void BoxMaker::make(const Run& run, std::vector<Box>& out) {
  progressions_of(run, runs_.loop_of(run));
  Box box;
  box.owner = run.block;
  box.access = run.access;
  const Grid& grid = grids_[cluster_[run.access]];
  for (const Progression& progression : progressions_) {
    box.weight = progression.trips * progression.width;
    box.first = progression.first;
    box.width = progression.width;
    box.reversed = progression.reversed;
    place(grid, progression, box, out);
  }
}

// Dimensions become levels of the grid. One whose stride is not a pitch, and the shorter of two on
// the same level, is gone through one by one.
void BoxMaker::place(const Grid& grid, const Progression& progression, Box box,
                     std::vector<Box>& out) const {
  std::array<std::uint64_t, max_levels> counts{1, 1, 1};
  Progression left = progression;
  std::array<std::size_t, 2> level{max_levels, max_levels};
  for (std::size_t d = 0; d < 2; ++d) {
    Dimension& dimension = left.dimensions[d];
    if (dimension.count == 1) continue;
    for (std::size_t l = 0; l < grid.levels; ++l)
      if (grid.pitch[l] == dimension.stride) level[d] = l;
  }
  for (std::size_t d = 0; d < 2; ++d) {
    const Dimension dimension = left.dimensions[d];
    const std::uint64_t other = left.dimensions[1 - d].count;
    const bool shorter = d == 0 ? dimension.count <= other : dimension.count < other;
    if (dimension.count == 1 || (level[d] != max_levels && (level[d] != level[1 - d] || !shorter)))
      continue;
    left.dimensions[d].count = 1;
    for (std::uint64_t i = 0; i < dimension.count; ++i) {
      Box one = box;
      if (dimension.threads) one.first += static_cast<std::uint32_t>(i) * box.width;
      left.lo = progression.lo + dimension.stride * i;
      place(grid, left, one, out);
    }
    return;
  }
  for (std::size_t d = 0; d < 2; ++d) {
    if (left.dimensions[d].count == 1) continue;
    counts[level[d]] = left.dimensions[d].count;
    if (left.dimensions[d].threads) box.thread_level = static_cast<std::uint8_t>(level[d]);
  }
  split(grid, progression.lo - grid.origin, counts, 0, box, out);
}

// Cuts where digits of a level run over.
void BoxMaker::split(const Grid& grid, std::uint64_t lo,
                     std::array<std::uint64_t, max_levels> counts, std::size_t level, Box box,
                     std::vector<Box>& out) const {
  for (; level + 1 < grid.levels; ++level) {
    const std::uint64_t size = grid.pitch[level + 1] / grid.pitch[level];
    const std::uint64_t digit = lo % grid.pitch[level + 1] / grid.pitch[level];
    const std::uint64_t count = counts[level];
    if (digit + count <= size) continue;
    const bool whole = counts[level + 1] == 1 && box.thread_level != level;
    for (std::uint64_t done = 0; done < count;) {
      std::uint64_t part =
          std::min(count - done, size - (lo % grid.pitch[level + 1]) / grid.pitch[level]);
      auto parts = counts;
      Box one = box;
      if (box.thread_level == level) one.first += static_cast<std::uint32_t>(done) * box.width;
      std::uint64_t rows = 1;
      if (whole && part == size) rows = (count - done) / size;
      parts[level] = part;
      if (rows > 1) parts[level + 1] = rows;
      split(grid, lo, parts, level + 1, one, out);
      done += part * rows;
      lo += part * rows * grid.pitch[level];
    }
    return;
  }
  std::uint64_t rest = lo;
  for (std::size_t l = grid.levels; l-- > 0;) {
    box.lo[l] = rest / grid.pitch[l];
    box.hi[l] = box.lo[l] + counts[l];
    rest %= grid.pitch[l];
  }
  out.push_back(box);
}

}  // namespace demarc::locality
