// Numbers of small lists worked out by hand, and properties of quantiles.
#include "demarc/study/statistics.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace demarc::study {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

// first, first + 1, ... in an order that is not theirs.
std::vector<double> shuffled_from(int first, std::size_t count) {
  std::vector<double> list;
  for (std::size_t i = 0; i < count; ++i) {
    list.push_back(first + static_cast<double>((i * 7919) % count));
  }
  return list;
}

TEST(Statistics, quantiles_are_times_that_occurred) {
  const Distribution d = describe(shuffled_from(1, 2000));
  EXPECT_EQ(d.count, 2000U);
  EXPECT_DOUBLE_EQ(d.mean, 1000.5);
  EXPECT_EQ(d.best, 1);
  EXPECT_EQ(d.p50, 1000);
  EXPECT_EQ(d.p99, 1980);
  EXPECT_EQ(d.worst, 2000);
}

TEST(Statistics, a_thousand_runs_have_a_p99_and_one_fewer_have_none) {
  EXPECT_EQ(describe(shuffled_from(1, 1000)).p99, 990);
  EXPECT_EQ(describe(shuffled_from(1, 999)).p99, std::nullopt);
  EXPECT_EQ(describe(shuffled_from(1, 999)).worst, 999);
}

TEST(Statistics, no_samples_give_zeros_and_no_bounds) {
  const Distribution d = describe({});
  EXPECT_EQ(d.count, 0U);
  EXPECT_EQ(d.mean, 0);
  EXPECT_EQ(d.p99_bounds, Bounds{});
}

TEST(Statistics, one_sample_is_every_quantile_and_bounds_no_mean) {
  const std::vector<double> one{7};
  const Distribution d = describe(one);
  EXPECT_EQ(d.best, 7);
  EXPECT_EQ(d.p50, 7);
  EXPECT_EQ(d.worst, 7);
  EXPECT_EQ(d.deviation, 0);
  EXPECT_EQ(d.mean_interval.low, -infinite);
  EXPECT_EQ(d.mean_interval.high, infinite);
  EXPECT_EQ(relative_precision(d), infinite);
}

TEST(Statistics, the_deviation_is_that_of_a_sample) {
  const std::vector<double> list{2, 4, 4, 4, 5, 5, 7, 9};
  EXPECT_NEAR(describe(list).deviation, std::sqrt(32.0 / 7), 1e-12);
}

TEST(Statistics, the_interval_of_a_mean_is_students) {
  const std::vector<double> list{1, 2, 3, 4, 5};
  const Distribution d = describe(list);
  const double half = 2.776445105198 * std::sqrt(0.5);  // four degrees of freedom
  EXPECT_DOUBLE_EQ(d.mean_interval.value, 3);
  EXPECT_NEAR(d.mean_interval.low, 3 - half, 1e-9);
  EXPECT_NEAR(d.mean_interval.high, 3 + half, 1e-9);
  EXPECT_NEAR(relative_precision(d), half / 3, 1e-9);
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

RC_GTEST_PROP(Statistics, quantile_never_falls_with_its_share_and_moves_with_the_times,
              (std::vector<std::uint16_t> raw)) {
  RC_PRE(!raw.empty());
  std::vector<double> sorted(raw.begin(), raw.end());
  std::sort(sorted.begin(), sorted.end());
  const double low = *rc::gen::inRange(1, 1000) / 1000.0;
  const double high = *rc::gen::inRange(1, 1000) / 1000.0;
  RC_ASSERT(quantile(sorted, std::min(low, high)) <= quantile(sorted, std::max(low, high)));
  std::vector<double> moved;
  for (const double x : sorted) moved.push_back(3 * x + 5);
  RC_ASSERT(quantile(moved, low) == 3 * quantile(sorted, low) + 5);
}

TEST(Statistics, a_share_that_is_a_whole_number_of_samples_is_not_rounded_past_it) {
  std::vector<double> sorted = shuffled_from(1, 100);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(quantile(sorted, 0.07), 7);  // 0.07 * 100 is above 7 in binary
  EXPECT_EQ(quantile(sorted, 0.071), 8);
}

TEST(Statistics, the_interval_of_a_ratio_is_fiellers) {
  const std::vector<double> equal{1, 2, 3, 4, 5};
  // Ratio 1, eight degrees of freedom, squared error 0.5 of either mean.
  const Estimate same = variation_percent(describe(equal), describe(equal));
  const double t = 2.306004135204;
  const double leading = 9 - t * t * 0.5;
  const double half = t * std::sqrt(0.5 * leading + 0.5 * 9);
  EXPECT_DOUBLE_EQ(same.value, 0);
  EXPECT_NEAR(same.low, 100 * ((9 - half) / leading - 1), 1e-7);
  EXPECT_NEAR(same.high, 100 * ((9 + half) / leading - 1), 1e-7);

  // Ratio 3/8. Squared errors 0.5 and (with the ratio's square) 1/16 * 9/64 * 64: Welch's degrees
  // of freedom are those of unequal lists.
  const std::vector<double> two{7.75, 8.25};
  const Estimate unequal = variation_percent(describe(equal), describe(two));
  const double error = 0.0625;
  const double scaled = error * 9 / 64;
  const double freedom = (0.5 + scaled) * (0.5 + scaled) / (0.25 / 4 + scaled * scaled / 1);
  EXPECT_NEAR(freedom, 4.13674810, 1e-8);
  // The ends are those ratios at which the difference of the means is t standard errors from 0.
  for (const double end : {unequal.low / 100 + 1, unequal.high / 100 + 1}) {
    const double distance = std::abs(3 - end * 8) / std::sqrt(0.5 + end * end * error);
    EXPECT_NEAR(distance, 2.7406205188, 1e-8);  // Student's t of those degrees of freedom
  }
  EXPECT_LT(unequal.low, unequal.value);
  EXPECT_GT(unequal.high, unequal.value);
}

TEST(Statistics, a_ratio_that_the_samples_do_not_bound_has_no_bounds) {
  const std::vector<double> some{10, 11, 12};
  const std::vector<double> one{10};
  const std::vector<double> anything{1, 100};  // a mean that cannot be told from 0
  for (const auto& [loaded, idle] : {std::pair{one, some}, {some, one}, {some, anything}}) {
    const Estimate v = variation_percent(describe(loaded), describe(idle));
    EXPECT_EQ(v.low, -infinite);
    EXPECT_EQ(v.high, infinite);
  }
}

TEST(Statistics, two_runs_of_either_list_bound_a_ratio_and_its_bounds_have_no_unit) {
  const std::vector<double> idle{100, 101};
  const std::vector<double> loaded{120, 121};
  const Estimate v = variation_percent(describe(loaded), describe(idle));
  EXPECT_GT(v.low, 10);
  EXPECT_LT(v.high, 30);
  std::vector<double> small_idle;
  std::vector<double> small_loaded;
  for (const double x : idle) small_idle.push_back(x / 1024);
  for (const double x : loaded) small_loaded.push_back(x / 1024);
  const Estimate small = variation_percent(describe(small_loaded), describe(small_idle));
  EXPECT_NEAR(small.low, v.low, 1e-9);
  EXPECT_NEAR(small.high, v.high, 1e-9);
}

TEST(Statistics, times_without_a_deviation_give_a_variation_without_a_doubt) {
  const std::vector<double> idle{10, 10, 10};
  const std::vector<double> loaded{12, 12, 12};
  const Estimate v = variation_percent(describe(loaded), describe(idle));
  EXPECT_DOUBLE_EQ(v.value, 20);
  EXPECT_DOUBLE_EQ(v.low, v.value);
  EXPECT_DOUBLE_EQ(v.high, v.value);
  EXPECT_EQ(relative_precision(describe(idle)), 0);
}

TEST(Statistics, one_exact_mean_leaves_the_doubt_of_the_other) {
  const std::vector<double> exact{10, 10, 10, 10, 10};
  const std::vector<double> spread{8, 9, 10, 11, 12};
  const double share = 2.776445105198 * std::sqrt(0.5) / 10;  // four degrees of freedom
  const Estimate above = variation_percent(describe(spread), describe(exact));
  EXPECT_NEAR(above.low, -100 * share, 1e-7);
  EXPECT_NEAR(above.high, 100 * share, 1e-7);
  const Estimate below = variation_percent(describe(exact), describe(spread));
  EXPECT_NEAR(below.low, 100 * (1 / (1 + share) - 1), 1e-7);
  EXPECT_NEAR(below.high, 100 * (1 / (1 - share) - 1), 1e-7);
}

TEST(Statistics, p99_is_compared_only_where_both_lists_carry_one) {
  const auto enough = shuffled_from(1001, 1000);
  const auto too_few = shuffled_from(1001, 999);
  EXPECT_FALSE(p99_variation_percent(enough, too_few));
  EXPECT_FALSE(p99_variation_percent(too_few, enough));
  EXPECT_TRUE(p99_variation_percent(enough, enough));
}

TEST(Statistics, the_interval_of_a_p99s_variation_is_what_both_intervals_allow) {
  const auto idle = shuffled_from(1001, 1000);    // 1001 ... 2000
  const auto loaded = shuffled_from(3001, 1000);  // 3001 ... 4000
  const auto v = p99_variation_percent(loaded, idle);
  ASSERT_TRUE(v);
  // Ranks 982 and 997 bound the p99 of 1000 with 97.5 %.
  EXPECT_DOUBLE_EQ(v->value, 100 * (3990.0 / 1990 - 1));
  EXPECT_DOUBLE_EQ(v->low, 100 * (3982.0 / 1997 - 1));
  EXPECT_DOUBLE_EQ(v->high, 100 * (3997.0 / 1982 - 1));
}

TEST(Statistics, the_worst_is_compared_among_as_many_runs_of_either_list) {
  const std::vector<double> idle{10, 12, 11, 50, 60};
  const std::vector<double> loaded{14, 24, 18};
  EXPECT_EQ(worst_variation(loaded, idle), (WorstVariation{100, 3}));  // 24 over 12, not over 60
  const auto the_other_way = worst_variation(idle, loaded);
  EXPECT_EQ(the_other_way.runs, 3U);
  EXPECT_DOUBLE_EQ(the_other_way.percent, -50);
}

}  // namespace
}  // namespace demarc::study
