// Steps of curves that are known point by point.
#include "demarc/probe/latency_steps.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "demarc/base/random.hpp"

namespace demarc::probe {
namespace {

// Four points an octave from 2 pages on, over `octaves`.
std::vector<CurvePoint> curve_of(int octaves, const std::function<double(double)>& cycles,
                                 double noise = 0, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<CurvePoint> curve;
  for (int i = 0; i <= 4 * octaves; ++i) {
    const auto pages = static_cast<std::uint64_t>(2 * std::exp2(i / 4.0) + 0.5);
    if (!curve.empty() && curve.back().pages == pages) continue;
    curve.push_back(
        {pages, cycles(static_cast<double>(pages)) + noise * random.normal(), 1.7 * noise});
  }
  return curve;
}

double sharp(double pages, double reach, double cost) {
  return pages > reach ? cost : 0;
}

TEST(LatencySteps, of_a_curve_that_stands_still_there_are_none) {
  EXPECT_TRUE(find_steps({}, 3).steps.empty());
  const std::vector<CurvePoint> one = {{4, 100, 0}};
  EXPECT_TRUE(find_steps(one, 3).steps.empty());
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const auto curve = curve_of(
        12, [](double) { return 270; }, 1.5, seed);
    EXPECT_TRUE(find_steps(curve, 3).steps.empty()) << seed;
  }
}

TEST(LatencySteps, a_sharp_step_is_found_between_its_points) {
  const auto curve = curve_of(10, [](double pages) { return 270 + sharp(pages, 100, 40); });
  const LatencySteps found = find_steps(curve, 3);
  ASSERT_EQ(found.steps.size(), 1U);
  const LatencyStep& step = found.steps.front();
  EXPECT_EQ(step.begin_pages, 91U);
  EXPECT_EQ(step.after_pages, 108U);
  EXPECT_EQ(step.end_pages, 108U);
  EXPECT_DOUBLE_EQ(step.cycles_before, 270);
  EXPECT_DOUBLE_EQ(step.cost(), 40);
  EXPECT_TRUE(step.to_level);
  EXPECT_DOUBLE_EQ(found.base_cycles, 270);
  EXPECT_DOUBLE_EQ(found.noise_cycles, 0);
}

TEST(LatencySteps, steps_an_octave_apart_are_two) {
  const auto curve =
      curve_of(10, [](double pages) { return 270 + sharp(pages, 60, 40) + sharp(pages, 120, 30); });
  const LatencySteps found = find_steps(curve, 3);
  ASSERT_EQ(found.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(found.steps[0].cost(), 40);
  EXPECT_DOUBLE_EQ(found.steps[1].cost(), 30);
}

// As a level rises that replaces any page; its tail ends in another level.
TEST(LatencySteps, a_rise_over_two_octaves_is_one_step_and_its_tail_none) {
  const auto rise = [](double pages, double reach, double cost) {
    return pages <= reach ? 0 : cost * (1 - std::exp(-3 * std::log2(pages / reach)));
  };
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto curve = curve_of(
        14, [&](double pages) { return 280 + rise(pages, 100, 120) + rise(pages, 3000, 80); }, 0.4,
        seed);
    const LatencySteps found = find_steps(curve, 3);
    ASSERT_EQ(found.steps.size(), 2U) << seed;
    EXPECT_NEAR(found.steps[0].cost(), 120, 3) << seed;
    EXPECT_NEAR(found.steps[1].cost(), 80, 3) << seed;
    EXPECT_NEAR(static_cast<double>(found.steps[0].begin_pages), 100, 20) << seed;
  }
}

TEST(LatencySteps, a_rise_that_the_curve_ends_in_is_said_not_to_have_ended) {
  const auto curve = curve_of(
      8, [](double pages) { return 270 + (pages <= 128 ? 0 : 60 * std::log2(pages / 128)); });
  const LatencySteps found = find_steps(curve, 3);
  ASSERT_EQ(found.steps.size(), 1U);
  EXPECT_FALSE(found.steps[0].to_level);
}

// A jump, 23 cycles an octave, then 65: as the first figures of an H200 rise behind 512 pages.
TEST(LatencySteps, a_steeper_rise_begins_another_step_where_the_one_before_has_not_ended) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto curve = curve_of(
        15,
        [](double pages) {
          const double slow = pages <= 512 ? 0 : 10 + 23 * std::min(std::log2(pages / 512), 5.0);
          return 271 + sharp(pages, 16, 15) + slow +
                 (pages <= 16384 ? 0 : 65 * std::log2(pages / 16384));
        },
        0.6, seed);
    const LatencySteps found = find_steps(curve, 3);
    ASSERT_EQ(found.steps.size(), 3U) << seed;
    EXPECT_EQ(found.steps[0].begin_pages, 16U) << seed;
    EXPECT_TRUE(found.steps[0].to_level) << seed;
    EXPECT_NEAR(static_cast<double>(found.steps[1].begin_pages), 512, 100) << seed;
    EXPECT_NEAR(found.steps[1].cost(), 125, 12) << seed;
    EXPECT_FALSE(found.steps[1].to_level) << seed << ": the next step began before it had ended";
    EXPECT_NEAR(static_cast<double>(found.steps[2].begin_pages), 16384, 3300) << seed;
    EXPECT_FALSE(found.steps[2].to_level) << seed;
  }
}

TEST(LatencySteps, a_rise_below_the_noise_or_the_least_cost_is_none) {
  const auto small = [](double pages) { return 270 + sharp(pages, 100, 4); };
  EXPECT_EQ(find_steps(curve_of(10, small), 3).steps.size(), 1U);
  EXPECT_TRUE(find_steps(curve_of(10, small), 5).steps.empty());
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(find_steps(curve_of(10, small, 2, seed), 3).steps.empty()) << seed;
  }
}

}  // namespace
}  // namespace demarc::probe
