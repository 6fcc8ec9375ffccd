// Computes means, quantiles and ratios of kernel times, each with the interval that covers it.
#include "demarc/study/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <vector>

namespace demarc::study {
namespace {

constexpr double confidence95 = 0.95;
// For each of two intervals that are to hold together in 95 % of all cases [Bonferroni].
constexpr double confidence_of_either = 0.975;

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

// How many standard errors the two-sided 95 % interval reaches to either side.
double student_t(double freedom) {
  const boost::math::students_t_distribution<double> student(freedom);
  return boost::math::quantile(student, (1 + confidence95) / 2);
}

// For the mean.
double squared_error(const Distribution& d) {
  return d.deviation * d.deviation / static_cast<double>(d.count);
}

// Degrees of freedom of the difference of two means with these squared errors [Welch].
double welch_freedom(double a, std::size_t count_a, double b, std::size_t count_b) {
  return (a + b) * (a + b) /
         (a * a / static_cast<double>(count_a - 1) + b * b / static_cast<double>(count_b - 1));
}

// Of the ratio of two means: all ratios r for which the means' difference a - r b is within its own
// interval around 0 [Fieller]. They lie between the roots of a quadratic.
Bounds ratio_bounds(const Distribution& a, const Distribution& b) {
  if (a.count < 2 || b.count < 2) return {};
  const double ratio = a.mean / b.mean;
  const double error_a = squared_error(a);
  const double error_b = squared_error(b);
  if (error_a == 0 && error_b == 0) return {ratio, ratio};
  const double t = student_t(welch_freedom(error_a, a.count, ratio * ratio * error_b, b.count));
  const double leading = b.mean * b.mean - t * t * error_b;
  if (leading <= 0) return {};
  const double middle = a.mean * b.mean;
  const double half = t * std::sqrt(error_a * leading + error_b * a.mean * a.mean);
  return {(middle - half) / leading, (middle + half) / leading};
}

double percent_more(double loaded, double idle) {
  return 100 * (loaded / idle - 1);
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  const double n = static_cast<double>(sorted.size());
  const double rank = std::clamp(std::ceil(q * n - 1e-9), 1.0, n);
  return sorted[static_cast<std::size_t>(rank) - 1];
}

// Samples up to the quantile are a binomial number K of `count`. Sample `low` lies above it where
// K < low, sample `high` below it where K >= high; either may happen as often as `tail` says.
Ranks quantile_ranks(std::size_t count, double q, double confidence) {
  namespace policies = boost::math::policies;
  using RoundUp = policies::policy<policies::discrete_quantile<policies::integer_round_up>>;
  const boost::math::binomial_distribution<double, RoundUp> up_to(static_cast<double>(count), q);
  const double tail = (1 - confidence) / 2;
  const auto least_with = [&up_to](double probability) {  // the least k with P(K <= k) >= it
    return static_cast<std::size_t>(boost::math::quantile(up_to, probability));
  };
  return {least_with(tail), least_with(1 - tail) + 1};
}

Bounds quantile_bounds(std::span<const double> sorted, double q, double confidence) {
  const Ranks ranks = quantile_ranks(sorted.size(), q, confidence);
  Bounds bounds;
  if (ranks.low >= 1) bounds.low = sorted[ranks.low - 1];
  if (ranks.high <= sorted.size()) bounds.high = sorted[ranks.high - 1];
  return bounds;
}

Distribution describe(std::span<const double> samples) {
  Distribution d;
  d.count = samples.size();
  if (samples.empty()) return d;
  const std::vector<double> sorted = sorted_copy(samples);
  const double n = static_cast<double>(sorted.size());
  d.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (const double x : sorted) squares += (x - d.mean) * (x - d.mean);
  d.deviation = sorted.size() < 2 ? 0 : std::sqrt(squares / (n - 1));
  d.best = sorted.front();
  d.p50 = quantile(sorted, 0.50);
  if (sorted.size() >= p99_least_runs) d.p99 = quantile(sorted, 0.99);
  d.worst = sorted.back();
  const double half = sorted.size() < 2 ? std::numeric_limits<double>::infinity()
                                        : student_t(n - 1) * std::sqrt(squared_error(d));
  d.mean_interval = {d.mean, d.mean - half, d.mean + half};
  d.p99_bounds = quantile_bounds(sorted, 0.99, confidence95);
  return d;
}

Estimate variation_percent(const Distribution& loaded, const Distribution& idle) {
  const Bounds ratio = ratio_bounds(loaded, idle);
  return {percent_more(loaded.mean, idle.mean), 100 * (ratio.low - 1), 100 * (ratio.high - 1)};
}

std::optional<Estimate> p99_variation_percent(std::span<const double> loaded,
                                              std::span<const double> idle) {
  if (loaded.size() < p99_least_runs || idle.size() < p99_least_runs) return std::nullopt;
  const auto sorted_loaded = sorted_copy(loaded);
  const auto sorted_idle = sorted_copy(idle);
  const Bounds a = quantile_bounds(sorted_loaded, 0.99, confidence_of_either);
  const Bounds b = quantile_bounds(sorted_idle, 0.99, confidence_of_either);
  return Estimate{percent_more(quantile(sorted_loaded, 0.99), quantile(sorted_idle, 0.99)),
                  percent_more(a.low, b.high), percent_more(a.high, b.low)};
}

WorstVariation worst_variation(std::span<const double> loaded, std::span<const double> idle) {
  const std::size_t runs = std::min(loaded.size(), idle.size());
  const auto worst_of = [runs](std::span<const double> list) {
    return *std::max_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(runs));
  };
  return {percent_more(worst_of(loaded), worst_of(idle)), runs};
}

double slowdown_of(double percent) {
  return 1 + percent / 100;
}

Estimate slowdown_of(const Estimate& percent) {
  return {slowdown_of(percent.value), slowdown_of(percent.low), slowdown_of(percent.high)};
}

std::string slowdown_text(double percent) {
  return fmt::format("{:.2f}x", slowdown_of(percent));
}

double relative_precision(const Distribution& d) {
  return (d.mean_interval.high - d.mean) / d.mean;
}

}  // namespace demarc::study
