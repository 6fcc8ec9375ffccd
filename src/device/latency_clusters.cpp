// Sorts rows of latencies into clusters, one for each L2 slice that looks different.
#include "demarc/device/latency_clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "latency_split.hpp"

namespace demarc::gpu {
namespace {

// A normal distribution cut at its middle scores 2.6; two separate heaps score far above 4.
constexpr double split_score = 4.5;

std::vector<Rows> split_all(const LatencyMatrix& matrix, std::uint32_t least_size) {
  Rows all(matrix.count());
  std::iota(all.begin(), all.end(), 0U);
  std::vector<Rows> open{std::move(all)};
  std::vector<Rows> done;
  while (!open.empty()) {
    Rows rows = std::move(open.back());
    open.pop_back();
    Split split = best_split(matrix, rows, least_size);
    // Large heaps hold many clusters, whose projection need not show a gap: cut them in any case
    // and let assign() and merge() repair what was cut through.
    const bool large = rows.size() > 24 * static_cast<std::size_t>(least_size);
    if (split.low.empty() || (split.score < split_score && !large)) {
      done.push_back(std::move(rows));
    } else {
      open.push_back(std::move(split.low));
      open.push_back(std::move(split.high));
    }
  }
  return done;
}

LatencyMatrix centers_of(const LatencyMatrix& matrix, const std::vector<Rows>& groups) {
  LatencyMatrix centers;
  centers.dimensions = matrix.dimensions;
  for (const auto& rows : groups) {
    const auto mean = mean_of(matrix, rows);
    centers.values.insert(centers.values.end(), mean.begin(), mean.end());
  }
  return centers;
}

// Which of the centres each row is nearest to, the first of equals. Tried first: that of the group
// in which the row is; the others only as far as they can be nearer (triangle inequality).
std::vector<std::uint32_t> nearest_centers(const LatencyMatrix& matrix,
                                           const std::vector<Rows>& groups,
                                           const LatencyMatrix& centers) {
  const std::size_t n = matrix.dimensions;
  const std::size_t count = centers.count();
  // A quarter of the squared distance of two centres, less what rounding may make of it.
  std::vector<double> quarters(count * count, 0);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const double distance = squared_distance(latency_row(centers, a), latency_row(centers, b), n);
      quarters[a * count + b] = quarters[b * count + a] = distance / 4 * (1 - 1e-9);
    }
  }
  std::vector<std::uint32_t> nearest(matrix.count(), 0);
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    for (const auto r : groups[g]) nearest[r] = g;
  }
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    const float* row = latency_row(matrix, i);
    std::uint32_t found = nearest[i];
    double best = squared_distance(row, latency_row(centers, found), n);
    const double* quarter = quarters.data() + found * count;
    for (std::uint32_t c = 0; c < count; ++c) {
      if (quarter[c] > best || c == found) continue;
      // Just above `best`, so that an equal distance is seen whole.
      const double limit = std::nextafter(best, std::numeric_limits<double>::max());
      const double distance = squared_distance(row, latency_row(centers, c), n, limit);
      if (distance > best || (distance == best && c > found)) continue;
      best = distance;
      found = c;
      quarter = quarters.data() + found * count;
    }
    nearest[i] = found;
  }
  return nearest;
}

// Gives every row to the group whose mean is nearest, until nothing changes, `rounds` times at
// most.
void settle(const LatencyMatrix& matrix, std::vector<Rows>& groups, std::uint32_t least_size,
            int rounds) {
  for (int round = 0; round < rounds; ++round) {
    std::vector<Rows> next(groups.size());
    const auto nearest = nearest_centers(matrix, groups, centers_of(matrix, groups));
    for (std::uint32_t i = 0; i < nearest.size(); ++i) next[nearest[i]].push_back(i);
    std::erase_if(next, [&](const Rows& rows) { return rows.size() < least_size; });
    if (next == groups || next.empty()) break;
    groups = std::move(next);
  }
}

// Joins groups that are no farther apart than one group's own spread allows.
void merge(const LatencyMatrix& matrix, std::vector<Rows>& groups, std::uint32_t least_size) {
  const std::size_t n = matrix.dimensions;
  std::vector<std::vector<float>> means;
  means.reserve(groups.size());
  for (const auto& rows : groups) means.push_back(mean_of(matrix, rows));
  // Groups that stay apart, by the numbers they bear since they were last changed.
  std::vector<std::size_t> number(groups.size());
  std::iota(number.begin(), number.end(), std::size_t{0});
  std::size_t next_number = groups.size();
  std::set<std::pair<std::size_t, std::size_t>> apart;
  for (std::size_t a = 0; a < groups.size();) {
    // Only the nearest other group can be the rest of the same cluster.
    std::size_t nearest = groups.size();
    double best = std::numeric_limits<double>::max();
    for (std::size_t b = 0; b < groups.size(); ++b) {
      if (a == b) continue;
      const double distance = squared_distance(means[a].data(), means[b].data(), n, best);
      if (distance < best) {
        best = distance;
        nearest = b;
      }
    }
    if (nearest == groups.size() || apart.contains({number[a], number[nearest]})) {
      ++a;
      continue;
    }
    Rows both = groups[a];
    both.insert(both.end(), groups[nearest].begin(), groups[nearest].end());
    if (best_split(matrix, both, least_size).score >= split_score) {
      apart.insert({number[a], number[nearest]});
      ++a;
      continue;
    }
    means[a] = mean_of(matrix, both);
    groups[a] = std::move(both);
    number[a] = next_number++;
    const auto gone = static_cast<std::ptrdiff_t>(nearest);
    groups.erase(groups.begin() + gone);
    means.erase(means.begin() + gone);
    number.erase(number.begin() + gone);
    a = 0;  // whose nearest may be another now
  }
}

// Median distance of the rows to their mean.
double spread_of(const LatencyMatrix& matrix, const Rows& rows) {
  const auto mean = mean_of(matrix, rows);
  std::vector<double> distances;
  distances.reserve(rows.size());
  for (const auto r : rows)
    distances.push_back(squared_distance(latency_row(matrix, r), mean.data(), mean.size()));
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return std::sqrt(*middle);
}

// Three and more clusters in one group need not show a gap in any projection, but they make it
// wider than the others: cuts such groups in two. True when there was one.
bool split_wide(const LatencyMatrix& matrix, std::vector<Rows>& groups, std::uint32_t least_size) {
  std::vector<double> spreads;
  spreads.reserve(groups.size());
  for (const auto& rows : groups) spreads.push_back(spread_of(matrix, rows));
  auto sorted = spreads;
  const auto quarter = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 4);
  std::nth_element(sorted.begin(), quarter, sorted.end());
  const double wide = 1.5 * *quarter;
  bool any = false;
  for (std::size_t g = spreads.size(); g-- > 0;) {
    if (spreads[g] <= wide) continue;
    Split split = best_split(matrix, groups[g], least_size);
    if (split.low.empty()) continue;
    groups[g] = std::move(split.low);
    groups.push_back(std::move(split.high));
    any = true;
  }
  return any;
}

void describe(const LatencyMatrix& matrix, const std::vector<Rows>& groups,
              LatencyClusters& clusters) {
  clusters.cluster.assign(matrix.count(), 0);
  double squares = 0;
  std::vector<double> distances;
  distances.reserve(matrix.count());
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    clusters.sizes.push_back(static_cast<std::uint32_t>(groups[g].size()));
    for (const auto r : groups[g]) {
      clusters.cluster[r] = g;
      const double square = squared_distance(latency_row(matrix, r),
                                             latency_row(clusters.centers, g), matrix.dimensions);
      squares += square;
      distances.push_back(std::sqrt(square));
    }
  }
  const double freedom = static_cast<double>(matrix.count()) * matrix.dimensions;
  clusters.noise = std::max(std::sqrt(squares / std::max(freedom, 1.0)), 1e-6);
  for (const double distance : distances) {
    const auto bin = static_cast<std::size_t>(distance / (clusters.noise / 4));
    if (bin >= 4096) continue;
    if (clusters.residual_histogram.size() <= bin) clusters.residual_histogram.resize(bin + 1);
    ++clusters.residual_histogram[bin];
  }
  double least = std::numeric_limits<double>::max();
  for (std::size_t a = 0; a < groups.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      least = std::min(
          least, squared_distance(latency_row(clusters.centers, a),
                                  latency_row(clusters.centers, b), matrix.dimensions, least));
    }
  }
  clusters.separation = groups.size() < 2 ? 0 : std::sqrt(least) / clusters.noise;
}

}  // namespace

LatencyClusters::Match LatencyClusters::match(std::span<const float> latencies) const {
  double best = std::numeric_limits<double>::max();
  double second = std::numeric_limits<double>::max();
  Match found;
  for (std::uint32_t c = 0; c < centers.count(); ++c) {
    const double distance =
        squared_distance(latencies.data(), latency_row(centers, c), latencies.size(), second);
    if (distance < best) {
      second = best;
      best = distance;
      found.cluster = c;
    } else {
      second = std::min(second, distance);
    }
  }
  found.distance = std::sqrt(best);
  found.clarity = std::sqrt(second / std::max(best, 1e-9));
  return found;
}

LatencyClusters cluster_latencies(const LatencyMatrix& latencies, std::uint32_t least_size) {
  LatencyClusters clusters;
  if (latencies.count() == 0) return clusters;
  least_size = std::max(least_size, 2U);
  auto groups = split_all(latencies, least_size);
  settle(latencies, groups, least_size, 6);
  for (int round = 0; round < 8 && split_wide(latencies, groups, least_size); ++round) {
    settle(latencies, groups, least_size, 1);
  }
  merge(latencies, groups, least_size);
  // A group may still hold two clusters that the first cuts left together.
  std::vector<Rows> final_groups;
  for (auto& rows : groups) {
    std::vector<Rows> open{std::move(rows)};
    while (!open.empty()) {
      Rows part = std::move(open.back());
      open.pop_back();
      Split split = best_split(latencies, part, least_size);
      if (split.low.empty() || split.score < split_score) {
        final_groups.push_back(std::move(part));
      } else {
        open.push_back(std::move(split.low));
        open.push_back(std::move(split.high));
      }
    }
  }
  settle(latencies, final_groups, least_size, 2);
  clusters.centers = centers_of(latencies, final_groups);
  describe(latencies, final_groups, clusters);
  return clusters;
}

}  // namespace demarc::gpu
