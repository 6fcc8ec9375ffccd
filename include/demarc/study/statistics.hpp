// What a list of kernel times says, and how sure that is. All functions are pure functions of the
// samples. They take the samples to be independent of each other.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace demarc::study {

// From this many runs on there is a p99: ten of them lie above it, so no single run decides it.
// With fewer than a hundred the p99 would be the worst run under another name.
inline constexpr std::size_t p99_least_runs = 1000;

// Ends of a confidence interval. An end is infinite if the sample is too small to give one.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

// A number with its 95 % confidence interval; an end is infinite as in Bounds.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
};

// The whole distribution of one run. Times have the unit of the samples (nanoseconds everywhere in
// this room). Quantiles are order statistics (nearest rank): p99 is a time that occurred.
struct Distribution {
  std::size_t count = 0;
  double mean = 0;
  double deviation = 0;  // sample standard deviation, 0 for fewer than two samples
  double best = 0;
  double p50 = 0;
  std::optional<double> p99;  // only from p99_least_runs samples on
  double worst = 0;           // of `count` samples: not comparable with the worst of more or fewer
  Estimate mean_interval;     // Student's t: exact for normal times, see docs/study.md for others
  Bounds p99_bounds;          // of the true p99, at every count, whatever the distribution
};

// No samples give zeros and no bounds.
[[nodiscard]] Distribution describe(std::span<const double> samples);

// Nearest-rank quantile of sorted samples, 0 < q <= 1; the samples must not be empty.
[[nodiscard]] double quantile(std::span<const double> sorted, double q);

// The ranks of two of `count` sorted samples that bound the true quantile q, 0 < q < 1. The first
// sample has rank 1. `low` is 0, or `high` is count + 1, if no sample bounds it.
struct Ranks {
  std::size_t low = 0;
  std::size_t high = 0;
  friend bool operator==(const Ranks&, const Ranks&) = default;
};

// Computed from exact binomial tails; each end may miss by half of 1 - `confidence`. Whatever the
// distribution, ties included, the bounds hold at least as often as `confidence` says.
[[nodiscard]] Ranks quantile_ranks(std::size_t count, double q, double confidence);
[[nodiscard]] Bounds quantile_bounds(std::span<const double> sorted, double q, double confidence);

// 100 (loaded - idle) / idle, with the interval of the ratio of two independent means: Fieller's,
// with Student's t and Welch's degrees of freedom. It is unbounded if either has one sample or if
// the idle mean cannot be told from 0. idle.mean must be above 0.
[[nodiscard]] Estimate variation_percent(const Distribution& loaded, const Distribution& idle);

// The same for p99, or nothing unless both lists carry one. The interval is the widest that two
// intervals of 97.5 % allow, which therefore covers 95 %.
[[nodiscard]] std::optional<Estimate> p99_variation_percent(std::span<const double> loaded,
                                                            std::span<const double> idle);

// The same for the worst run. The worst of more runs is worse by chance alone. So only the first
// runs of the longer list are looked at, as many as the shorter list has.
struct WorstVariation {
  double percent = 0;
  std::size_t runs = 0;  // how many of either list
  friend bool operator==(const WorstVariation&, const WorstVariation&) = default;
};

// Neither list may be empty.
[[nodiscard]] WorstVariation worst_variation(std::span<const double> loaded,
                                             std::span<const double> idle);

// What users read of a variation: 8 per cent more is a slowdown of 1.08, "1.08x".
[[nodiscard]] double slowdown_of(double percent);
[[nodiscard]] Estimate slowdown_of(const Estimate& percent);
[[nodiscard]] std::string slowdown_text(double percent);

// Half width of the interval of the mean, divided by the mean. A stopping rule compares it.
// Infinite for one sample.
[[nodiscard]] double relative_precision(const Distribution& d);

}  // namespace demarc::study
