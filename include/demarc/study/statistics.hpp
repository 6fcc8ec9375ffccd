// What a list of kernel times says, with how sure it is. Pure functions of the samples.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace demarc::study {

// A number with its 95 % confidence interval.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// The whole distribution of one run. Times in the unit of the samples (nanoseconds everywhere in
// this room). Quantiles are order statistics (nearest rank): p99 is a time that occurred.
struct Distribution {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  // sample standard deviation, 0 for fewer than two samples
  double best = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double worst = 0;
  Estimate mean_interval;  // normal approximation of the mean
  Estimate p99_interval;   // binomial interval of the order statistic, distribution-free
};

// All zeros for no samples.
[[nodiscard]] Distribution describe(std::span<const double> samples);

// Nearest-rank quantile of sorted samples, 0 < q <= 1; the samples must not be empty.
[[nodiscard]] double quantile(std::span<const double> sorted, double q);

// 100 (loaded - idle) / idle with the interval of the ratio of two independent means (delta
// method). The inputs must have idle.mean > 0.
[[nodiscard]] Estimate variation_percent(const Distribution& loaded, const Distribution& idle);

// The same for p99: the interval is the widest that the two order-statistic intervals allow.
[[nodiscard]] Estimate p99_variation_percent(const Distribution& loaded, const Distribution& idle);

// Half width of the interval of the mean over the mean: what a stopping rule compares.
[[nodiscard]] double relative_precision(const Distribution& d);

}  // namespace demarc::study
