// Whether intervals cover the truth as often as they say: against exact binomial sums, and by
// drawing samples whose truth is known.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "demarc/base/random.hpp"
#include "demarc/study/statistics.hpp"

namespace demarc::study {
namespace {

// P(first <= K < end) for a binomial number K of n.
double probability_between(std::size_t first, std::size_t end, std::size_t n, double q) {
  double sum = 0;
  const double size = static_cast<double>(n);
  for (std::size_t i = first; i < end; ++i) {
    const double k = static_cast<double>(i);
    sum += std::exp(std::lgamma(size + 1) - std::lgamma(k + 1) - std::lgamma(size - k + 1) +
                    k * std::log(q) + (size - k) * std::log(1 - q));
  }
  return sum;
}

TEST(Coverage, ranks_of_a_quantile_are_the_innermost_that_leave_out_half_of_the_rest_each) {
  for (const std::size_t n : {1U, 2U, 3U, 5U, 6U, 25U, 40U, 100U, 367U, 368U, 400U, 1000U, 3000U}) {
    for (const double q : {0.5, 0.9, 0.99}) {
      for (const double confidence : {0.95, 0.975}) {
        const double tail = (1 - confidence) / 2;
        const Ranks ranks = quantile_ranks(n, q, confidence);
        SCOPED_TRACE(testing::Message() << n << " " << q << " " << confidence);
        ASSERT_LE(ranks.high, n + 1);
        EXPECT_LE(probability_between(0, ranks.low, n, q), tail);
        EXPECT_LE(probability_between(ranks.high, n + 1, n, q), tail);
        EXPECT_GT(probability_between(0, ranks.low + 1, n, q), tail);
        EXPECT_GT(probability_between(ranks.high - 1, n + 1, n, q), tail);
      }
    }
  }
}

TEST(Coverage, a_p99_has_no_upper_bound_below_368_runs) {
  EXPECT_EQ(quantile_ranks(367, 0.99, 0.95).high, 368U);
  EXPECT_EQ(quantile_ranks(368, 0.99, 0.95).high, 368U);
  EXPECT_EQ(quantile_ranks(25, 0.5, 0.95), (Ranks{8, 18}));  // as in the tables of books
}

TEST(Coverage, bounds_are_the_samples_of_those_ranks_and_infinite_where_there_is_none) {
  std::vector<double> sorted;
  for (int i = 1; i <= 40; ++i) sorted.push_back(i);
  EXPECT_EQ(quantile_ranks(40, 0.99, 0.95), (Ranks{38, 41}));
  EXPECT_EQ(quantile_bounds(sorted, 0.99, 0.95), (Bounds{.low = 38}));
  EXPECT_EQ(quantile_bounds(sorted, 0.01, 0.95), (Bounds{.high = 3}));
  EXPECT_EQ(quantile_bounds(sorted, 0.5, 0.95), (Bounds{14, 27}));
  EXPECT_EQ(describe(sorted).p99_bounds, (Bounds{.low = 38}));
  EXPECT_EQ(quantile_bounds(std::span(sorted).first(6), 0.5, 0.95), (Bounds{1, 6}));
  EXPECT_EQ(quantile_bounds(std::span(sorted).first(5), 0.5, 0.95), Bounds{});
  for (int i = 41; i <= 1000; ++i) sorted.push_back(i);
  EXPECT_EQ(describe(sorted).p99_bounds, (Bounds{983, 997}));
}

// How far the share of `trials` may lie from the truth `p`: four standard errors.
double tolerance(double p, int trials) {
  return 4 * std::sqrt(p * (1 - p) / trials);
}

// Times of four kinds, each from one draw, and their true quantiles.
constexpr std::size_t kinds = 4;
constexpr std::array<double, 3> shares{0.5, 0.9, 0.99};
using Times = std::array<double, kinds>;

Times draw(Random& random) {
  const double normal = random.normal();
  const double uniform = random.uniform();
  return {normal, -std::log(1 - uniform), std::exp(2 * normal), std::floor(8 * uniform)};
}

Times truth_of(std::size_t share) {
  constexpr std::array<double, 3> normal{0, 1.2815515655446004, 2.3263478740408408};
  constexpr std::array<double, 3> ticks{3, 7, 7};
  return {normal[share], -std::log(1 - shares[share]), std::exp(2 * normal[share]), ticks[share]};
}

// Among `n` times of each kind, how many are at most each true quantile, and how many are below it.
struct Counts {
  std::array<std::array<std::size_t, kinds>, shares.size()> up_to{};
  std::array<std::array<std::size_t, kinds>, shares.size()> below{};
};

Counts counts_of(Random& random, std::size_t n) {
  static const std::array<Times, 3> truths{truth_of(0), truth_of(1), truth_of(2)};
  Counts counts;
  for (std::size_t i = 0; i < n; ++i) {
    const Times times = draw(random);
    for (std::size_t s = 0; s < shares.size(); ++s) {
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        counts.up_to[s][kind] += times[kind] <= truths[s][kind] ? 1U : 0U;
        counts.below[s][kind] += times[kind] < truths[s][kind] ? 1U : 0U;
      }
    }
  }
  return counts;
}

// How often the interval of the quantile with this share held the truth, of each kind of times.
std::array<double, kinds> covered_share(const std::vector<Counts>& trials, std::size_t s,
                                        Ranks ranks) {
  std::array<double, kinds> covered{};
  for (const Counts& counts : trials) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      // The sample of rank r is at most t where r samples are; at least t where fewer lie below.
      const bool holds = counts.up_to[s][kind] >= ranks.low && counts.below[s][kind] < ranks.high;
      covered[kind] += holds ? 1 / static_cast<double>(trials.size()) : 0;
    }
  }
  return covered;
}

class CoverageOfQuantiles : public ::testing::TestWithParam<std::size_t> {};

TEST_P(CoverageOfQuantiles, is_at_least_what_they_say_and_what_binomial_sums_give) {
  const std::size_t n = GetParam();
  const int trials = static_cast<int>(25000 / n + 125);
  Random random(11);
  std::vector<Counts> drawn;
  for (int trial = 0; trial < trials; ++trial) drawn.push_back(counts_of(random, n));
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const Ranks ranks = quantile_ranks(n, shares[s], 0.95);
    const double exact = probability_between(ranks.low, ranks.high, n, shares[s]);
    EXPECT_GE(exact, 0.95);
    const auto covered = covered_share(drawn, s, ranks);
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      SCOPED_TRACE(testing::Message() << shares[s] << " of times of kind " << kind);
      EXPECT_GE(covered[kind], 0.95 - tolerance(0.95, trials));
      if (kind == 3) continue;  // ticks cover more: many runs are equal
      EXPECT_NEAR(covered[kind], exact, tolerance(exact, trials) + 1e-9);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(runs, CoverageOfQuantiles, ::testing::Values(25U, 100U, 400U, 1000U));

std::vector<double> normal_times(Random& random, std::size_t count, double mean, double deviation) {
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(mean + deviation * random.normal());
  return times;
}

TEST(Coverage, the_interval_of_a_mean_of_normal_times_covers_95_times_in_100_at_every_size) {
  Random random(12);
  for (const std::size_t n : {3U, 25U, 100U, 400U, 1000U}) {
    const int trials = n == 3 ? 2000 : static_cast<int>(25000 / n + 100);
    int covered = 0;
    for (int trial = 0; trial < trials; ++trial) {
      const Estimate mean = describe(normal_times(random, n, 100, 3)).mean_interval;
      covered += mean.low <= 100 && 100 <= mean.high ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(covered) / trials, 0.95, tolerance(0.95, trials)) << n;
  }
}

TEST(Coverage, the_interval_of_a_variation_covers_95_times_in_100_for_lists_of_unequal_size) {
  Random random(3);
  struct Sizes {
    std::size_t loaded, idle;
  };
  for (const auto& [loaded, idle] : {Sizes{4, 4}, Sizes{4, 40}, Sizes{40, 4}, Sizes{80, 80}}) {
    constexpr int trials = 600;
    int covered = 0;
    for (int trial = 0; trial < trials; ++trial) {
      const Estimate v = variation_percent(describe(normal_times(random, loaded, 140, 10)),
                                           describe(normal_times(random, idle, 100, 5)));
      covered += v.low <= 40 && 40 <= v.high ? 1 : 0;
    }
    // Welch's degrees of freedom are an approximation: a little more room than the draws need.
    EXPECT_NEAR(static_cast<double>(covered) / trials, 0.95, tolerance(0.95, trials) + 0.005)
        << loaded << " " << idle;
  }
}

TEST(Coverage, the_interval_of_a_p99s_variation_covers_at_least_95_times_in_100) {
  Random random(5);
  int covered = 0;
  constexpr int trials = 60;
  for (int trial = 0; trial < trials; ++trial) {
    const auto loaded = normal_times(random, 1000, 150, 15);
    const auto idle = normal_times(random, 1000, 100, 10);
    const auto v = p99_variation_percent(loaded, idle);
    covered += v->low <= 50 && 50 <= v->high ? 1 : 0;
  }
  EXPECT_GE(covered, trials * (0.95 - tolerance(0.95, trials)));
}

}  // namespace
}  // namespace demarc::study
