#include "demarc/base/random.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

namespace demarc {
namespace {

TEST(Random, the_sequence_of_a_seed_is_fixed_for_ever) {
  Random random(0);
  EXPECT_EQ(random(), 11091344671253066420ULL);
  EXPECT_EQ(random(), 13793997310169335082ULL);
}

RC_GTEST_PROP(Random, below_stays_below, (std::uint64_t seed)) {
  const auto bound = *rc::gen::nonZero<std::uint64_t>();
  Random random(seed);
  for (int i = 0; i < 100; ++i) RC_ASSERT(random.below(bound) < bound);
}

TEST(Random, normal_has_mean_zero_and_variance_one) {
  Random random(1);
  double sum = 0;
  double squares = 0;
  constexpr int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0.0, 0.02);
  EXPECT_NEAR(squares / n, 1.0, 0.02);
}

}  // namespace
}  // namespace demarc
