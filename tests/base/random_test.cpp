// Tests that the numbers of a seed are the same for ever and lie where they must.
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
  EXPECT_EQ(random(), 1900383378846508768ULL);
  EXPECT_EQ(random(), 7684712102626143532ULL);
  EXPECT_EQ(random(), 13521403990117723737ULL);
}

RC_GTEST_PROP(Random, below_stays_below, (std::uint64_t seed)) {
  const auto bound = *rc::gen::nonZero<std::uint64_t>();
  Random random(seed);
  for (int i = 0; i < 100; ++i) RC_ASSERT(random.below(bound) < bound);
}

// Computed apart from this code. With such a bound every second number is drawn again.
TEST(Random, what_is_made_of_the_sequence_is_fixed_too) {
  Random wide(5);
  for (const std::uint64_t expected : {2660124057020295092ULL, 5553229355294069358ULL,
                                       5991011151194742231ULL, 7458586743318756548ULL}) {
    EXPECT_EQ(wide.below((1ULL << 63U) + 1), expected);
  }
  Random narrow(5);
  for (const std::uint64_t expected : {2U, 6U, 6U, 8U, 5U, 7U})
    EXPECT_EQ(narrow.below(10), expected);
  Random even(5);
  EXPECT_EQ(even.uniform(), 0.2884112281702357);
  EXPECT_EQ(even.uniform(), 0.6020823331320106);
  EXPECT_NEAR(Random(5).normal(), -0.6609817491416791, 1e-12);
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
