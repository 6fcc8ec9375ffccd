#include "demarc/study/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace demarc::study {
namespace {

constexpr double z95 = 1.959963984540054;  // two-sided 95 % of the standard normal

// Bounds of the binomial interval of a quantile: ranks q n -/+ z sqrt(n q (1-q)), clamped.
Estimate quantile_interval(std::span<const double> sorted, double q) {
  const double n = static_cast<double>(sorted.size());
  const double spread = z95 * std::sqrt(n * q * (1 - q));
  const auto at = [&](double rank) {
    const double clamped = std::clamp(rank, 1.0, n);
    return sorted[static_cast<std::size_t>(clamped) - 1];
  };
  return {quantile(sorted, q), at(std::floor(n * q - spread)), at(std::ceil(n * q + spread) + 1)};
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  const double n = static_cast<double>(sorted.size());
  const double rank = std::clamp(std::ceil(q * n - 1e-9), 1.0, n);
  return sorted[static_cast<std::size_t>(rank) - 1];
}

Distribution describe(std::span<const double> samples) {
  Distribution d;
  d.count = samples.size();
  if (samples.empty()) return d;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const double n = static_cast<double>(sorted.size());
  d.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double x : sorted) squares += (x - d.mean) * (x - d.mean);
  d.deviation = sorted.size() < 2 ? 0 : std::sqrt(squares / (n - 1));
  d.best = sorted.front();
  d.p50 = quantile(sorted, 0.50);
  d.p90 = quantile(sorted, 0.90);
  d.p99 = quantile(sorted, 0.99);
  d.worst = sorted.back();
  const double half = z95 * d.deviation / std::sqrt(n);
  d.mean_interval = {d.mean, d.mean - half, d.mean + half};
  d.p99_interval = quantile_interval(sorted, 0.99);
  return d;
}

Estimate variation_percent(const Distribution& loaded, const Distribution& idle) {
  const double ratio = loaded.mean / idle.mean;
  const auto relative_variance = [](const Distribution& d) {
    if (d.count == 0 || d.mean == 0) return 0.0;
    const double share = d.deviation / d.mean;
    return share * share / static_cast<double>(d.count);
  };
  const double half = z95 * ratio * std::sqrt(relative_variance(loaded) + relative_variance(idle));
  return {100 * (ratio - 1), 100 * (ratio - half - 1), 100 * (ratio + half - 1)};
}

Estimate p99_variation_percent(const Distribution& loaded, const Distribution& idle) {
  const auto percent = [](double a, double b) { return 100 * (a / b - 1); };
  return {percent(loaded.p99, idle.p99), percent(loaded.p99_interval.low, idle.p99_interval.high),
          percent(loaded.p99_interval.high, idle.p99_interval.low)};
}

double relative_precision(const Distribution& d) {
  return d.mean == 0 ? 0 : (d.mean_interval.high - d.mean) / d.mean;
}

}  // namespace demarc::study
