#include "demarc/gpu/latency_clusters.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace demarc::gpu {
namespace {

using Rows = std::vector<std::uint32_t>;

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double difference = static_cast<double>(a[k]) - static_cast<double>(b[k]);
    sum += difference * difference;
  }
  return sum;
}

std::vector<float> mean_of(const LatencyMatrix& matrix, const Rows& rows) {
  std::vector<double> sum(matrix.dimensions, 0);
  for (const auto r : rows) {
    const auto row = matrix.row(r);
    for (std::size_t k = 0; k < row.size(); ++k) sum[k] += static_cast<double>(row[k]);
  }
  std::vector<float> mean(matrix.dimensions);
  for (std::size_t k = 0; k < sum.size(); ++k) {
    mean[k] = static_cast<float>(sum[k] / static_cast<double>(rows.size()));
  }
  return mean;
}

// Direction in which the rows spread most (power iteration on their covariance).
std::vector<double> main_direction(const LatencyMatrix& matrix, const Rows& rows,
                                   std::span<const float> mean) {
  const std::size_t n = matrix.dimensions;
  std::vector<double> covariance(n * n, 0);
  for (const auto r : rows) {
    const auto row = matrix.row(r);
    for (std::size_t i = 0; i < n; ++i) {
      const double di = static_cast<double>(row[i]) - static_cast<double>(mean[i]);
      for (std::size_t j = 0; j < n; ++j) {
        covariance[i * n + j] += di * (static_cast<double>(row[j]) - static_cast<double>(mean[j]));
      }
    }
  }
  // Start along the coordinate of the largest variance, tilted so that no axis is exactly absent.
  std::vector<double> direction(n, 0.01);
  std::size_t widest = 0;
  for (std::size_t i = 1; i < n; ++i) {
    if (covariance[i * n + i] > covariance[widest * n + widest]) widest = i;
  }
  direction[widest] = 1;
  for (int step = 0; step < 40; ++step) {
    std::vector<double> next(n, 0);
    double norm = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) next[i] += covariance[i * n + j] * direction[j];
      norm += next[i] * next[i];
    }
    norm = std::sqrt(norm);
    if (norm == 0) break;
    for (std::size_t i = 0; i < n; ++i) direction[i] = next[i] / norm;
  }
  return direction;
}

struct Split {
  Rows low;
  Rows high;
  double score = 0;  // distance of the two means over the spread inside the parts
};

// The best cut in two along the main direction (least sum of squares).
Split best_split(const LatencyMatrix& matrix, const Rows& rows, std::uint32_t least_size) {
  Split split;
  if (rows.size() < 2 * static_cast<std::size_t>(least_size)) return split;
  const auto mean = mean_of(matrix, rows);
  const auto direction = main_direction(matrix, rows, mean);
  std::vector<std::pair<double, std::uint32_t>> projected;
  projected.reserve(rows.size());
  for (const auto r : rows) {
    const auto row = matrix.row(r);
    double at = 0;
    for (std::size_t k = 0; k < row.size(); ++k) {
      at += (static_cast<double>(row[k]) - static_cast<double>(mean[k])) * direction[k];
    }
    projected.emplace_back(at, r);
  }
  std::sort(projected.begin(), projected.end());
  const double count = static_cast<double>(projected.size());
  double total = 0;
  double total_square = 0;
  for (const auto& [at, r] : projected) {
    total += at;
    total_square += at * at;
  }
  double left = 0;
  double best_between = -1;
  std::size_t best_at = 0;
  for (std::size_t i = 0; i + least_size < projected.size(); ++i) {
    left += projected[i].first;
    if (i + 1 < least_size) continue;
    const double n = static_cast<double>(i + 1);
    const double left_mean = left / n;
    const double right_mean = (total - left) / (count - n);
    const double between =
        n * (count - n) / count * (left_mean - right_mean) * (left_mean - right_mean);
    if (between > best_between) {
      best_between = between;
      best_at = i + 1;
    }
  }
  if (best_at == 0) return split;
  for (std::size_t i = 0; i < projected.size(); ++i) {
    (i < best_at ? split.low : split.high).push_back(projected[i].second);
  }
  const double n = static_cast<double>(best_at);
  const double gap = std::sqrt(best_between * count / (n * (count - n)));
  const double within =
      std::sqrt(std::max((total_square - total * total / count - best_between) / count, 1e-9));
  split.score = gap / within;
  return split;
}

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

void set_centers(const LatencyMatrix& matrix, const std::vector<Rows>& groups,
                 LatencyClusters& clusters) {
  clusters.centers.dimensions = matrix.dimensions;
  clusters.centers.values.clear();
  clusters.sizes.clear();
  for (const auto& rows : groups) {
    const auto mean = mean_of(matrix, rows);
    clusters.centers.values.insert(clusters.centers.values.end(), mean.begin(), mean.end());
    clusters.sizes.push_back(static_cast<std::uint32_t>(rows.size()));
  }
}

std::vector<Rows> assign(const LatencyMatrix& matrix, const LatencyClusters& clusters,
                         std::uint32_t least_size) {
  std::vector<Rows> groups(clusters.centers.count());
  for (std::uint32_t i = 0; i < matrix.count(); ++i) {
    groups[clusters.match(matrix.row(i)).cluster].push_back(i);
  }
  std::erase_if(groups, [&](const Rows& rows) { return rows.size() < least_size; });
  return groups;
}

// Joins groups that are no farther apart than one group's own spread allows.
bool merge_once(const LatencyMatrix& matrix, std::vector<Rows>& groups, std::uint32_t least_size) {
  LatencyClusters clusters;
  set_centers(matrix, groups, clusters);
  for (std::size_t a = 0; a < groups.size(); ++a) {
    // Only the nearest other group can be the rest of the same cluster.
    std::size_t nearest = groups.size();
    double best = std::numeric_limits<double>::max();
    for (std::size_t b = 0; b < groups.size(); ++b) {
      const double distance =
          a == b ? best : squared_distance(clusters.centers.row(a), clusters.centers.row(b));
      if (distance < best) {
        best = distance;
        nearest = b;
      }
    }
    if (nearest == groups.size()) continue;
    Rows both = groups[a];
    both.insert(both.end(), groups[nearest].begin(), groups[nearest].end());
    if (best_split(matrix, both, least_size).score < split_score) {
      groups[a] = std::move(both);
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(nearest));
      return true;
    }
  }
  return false;
}

// Median distance of the rows to their mean.
double spread_of(const LatencyMatrix& matrix, const Rows& rows) {
  const auto mean = mean_of(matrix, rows);
  std::vector<double> distances;
  distances.reserve(rows.size());
  for (const auto r : rows) distances.push_back(squared_distance(matrix.row(r), mean));
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
    for (const auto r : groups[g]) {
      clusters.cluster[r] = g;
      const double square = squared_distance(matrix.row(r), clusters.centers.row(g));
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
      least = std::min(least, squared_distance(clusters.centers.row(a), clusters.centers.row(b)));
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
    const double distance = squared_distance(latencies, centers.row(c));
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
  for (int round = 0; round < 6; ++round) {
    set_centers(latencies, groups, clusters);
    groups = assign(latencies, clusters, least_size);
  }
  for (int round = 0; round < 8 && split_wide(latencies, groups, least_size); ++round) {
    set_centers(latencies, groups, clusters);
    groups = assign(latencies, clusters, least_size);
  }
  while (merge_once(latencies, groups, least_size)) {
  }
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
  for (int round = 0; round < 2; ++round) {
    set_centers(latencies, final_groups, clusters);
    final_groups = assign(latencies, clusters, least_size);
  }
  set_centers(latencies, final_groups, clusters);
  describe(latencies, final_groups, clusters);
  return clusters;
}

}  // namespace demarc::gpu
