#include "demarc/study/statistics.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "demarc/base/random.hpp"

namespace demarc::study {
namespace {

TEST(Statistics, quantiles_are_times_that_occurred) {
  std::vector<double> samples;
  for (int i = 200; i >= 1; --i) samples.push_back(i);
  const Distribution d = describe(samples);
  EXPECT_EQ(d.count, 200U);
  EXPECT_DOUBLE_EQ(d.mean, 100.5);
  EXPECT_EQ(d.best, 1);
  EXPECT_EQ(d.p50, 100);
  EXPECT_EQ(d.p90, 180);
  EXPECT_EQ(d.p99, 198);
  EXPECT_EQ(d.worst, 200);
}

TEST(Statistics, no_samples_give_zeros) {
  EXPECT_EQ(describe({}).mean, 0);
}

TEST(Statistics, one_sample_is_every_quantile) {
  const std::vector<double> one{7};
  const Distribution d = describe(one);
  EXPECT_EQ(d.p50, 7);
  EXPECT_EQ(d.p99, 7);
  EXPECT_EQ(d.deviation, 0);
}

RC_GTEST_PROP(Statistics, quantile_leaves_at_most_its_share_above,
              (std::vector<std::uint16_t> raw)) {
  RC_PRE(!raw.empty());
  std::vector<double> sorted(raw.begin(), raw.end());
  std::sort(sorted.begin(), sorted.end());
  for (const double q : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    const double value = quantile(sorted, q);
    const auto above =
        std::count_if(sorted.begin(), sorted.end(), [&](double x) { return x > value; });
    const auto below =
        std::count_if(sorted.begin(), sorted.end(), [&](double x) { return x < value; });
    const double n = static_cast<double>(sorted.size());
    RC_ASSERT(static_cast<double>(above) <= (1 - q) * n + 1e-6);
    RC_ASSERT(static_cast<double>(below) < q * n);
  }
}

TEST(Statistics, the_interval_of_a_variation_covers_the_truth_about_95_times_in_100) {
  Random random(3);
  int covered = 0;
  constexpr int trials = 2000;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> idle;
    std::vector<double> loaded;
    for (int i = 0; i < 80; ++i) {
      idle.push_back(100 + 3 * random.normal());
      loaded.push_back(140 + 10 * random.normal());
    }
    const Estimate v = variation_percent(describe(loaded), describe(idle));
    if (v.low <= 40 && 40 <= v.high) ++covered;
  }
  EXPECT_GT(covered, trials * 92 / 100);
  EXPECT_LT(covered, trials * 98 / 100);
}

TEST(Statistics, the_interval_of_p99_covers_the_truth_at_least_90_times_in_100) {
  Random random(5);
  const double truth = std::exp(0.1 * 2.3263478740408408);
  int covered = 0;
  constexpr int trials = 1000;
  for (int t = 0; t < trials; ++t) {
    std::vector<double> samples;
    for (int i = 0; i < 1000; ++i) samples.push_back(std::exp(0.1 * random.normal()));
    const Estimate p = describe(samples).p99_interval;
    if (p.low <= truth && truth <= p.high) ++covered;
  }
  EXPECT_GT(covered, trials * 90 / 100);
}

TEST(Statistics, variation_of_equal_runs_is_zero) {
  const std::vector<double> run{10, 11, 12};
  EXPECT_DOUBLE_EQ(variation_percent(describe(run), describe(run)).value, 0);
  EXPECT_DOUBLE_EQ(p99_variation_percent(describe(run), describe(run)).value, 0);
}

}  // namespace
}  // namespace demarc::study
