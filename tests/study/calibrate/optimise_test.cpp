// The search for the least of a function of one number.
#include "calibrate/optimise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace demarc::study {
namespace {

Optimum least(const Axis& axis, const std::function<double(double)>& error, double enough = 0.002) {
  const auto found =
      least_error(axis, enough, [&](double value) -> Result<double> { return error(value); });
  EXPECT_TRUE(found) << found.error().message;
  return *found;
}

TEST(LeastError, is_found_by_factors_and_by_differences) {
  const Optimum factor = least({1, 1024, 64, true, false},
                               [](double value) { return std::abs(std::log(value / 9.5)); });
  EXPECT_NEAR(factor.at, 9.5, 0.03);
  EXPECT_LE(factor.error, 0.002);
  const Optimum difference =
      least({0, 2000, 0, false, false}, [](double value) { return std::abs(value - 410) / 1000; });
  EXPECT_NEAR(difference.at, 410, 2.1);
}

TEST(LeastError, is_asked_for_once_where_it_begins_well) {
  const Optimum found = least({1, 100, 30, true, false}, [](double) { return 0.001; });
  EXPECT_EQ(found.evaluations, 1U);
  EXPECT_EQ(found.at, 30);
}

TEST(LeastError, lies_at_a_whole_number_and_asks_for_each_once) {
  std::multiset<double> asked;
  const Optimum found = least({1, 4096, 512, true, true}, [&](double value) {
    asked.insert(value);
    return std::abs(std::log(value / 48));
  });
  EXPECT_EQ(found.at, 48);
  EXPECT_EQ(found.evaluations, asked.size());
  for (const double value : asked) {
    EXPECT_EQ(value, std::round(value));
    EXPECT_EQ(asked.count(value), 1U) << value;
  }
}

TEST(LeastError, is_found_where_the_function_is_flat_at_the_start) {
  const Optimum found = least({1, 4096, 2048, true, true}, [](double value) {
    return value > 200 ? 0.5 : std::abs(std::log(value / 54)) / 3;
  });
  EXPECT_NEAR(found.at, 54, 1);
}

TEST(LeastError, stays_within_the_limits) {
  double lowest = 1e9;
  double highest = 0;
  const Optimum found = least({4, 64, 8, true, false}, [&](double value) {
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
    return std::abs(std::log(value / 1000));
  });
  EXPECT_NEAR(found.at, 64, 0.5);
  EXPECT_GE(lowest, 4);
  EXPECT_LE(highest, 64);
}

TEST(LeastError, ends_with_the_error_of_a_function_that_has_no_value) {
  for (const int from : {1, 3}) {
    int asked = 0;
    const auto found = least_error({1, 64, 8, true, false}, 0.001, [&](double) -> Result<double> {
      if (++asked < from) return 1.0 / asked;
      return check_failed("stuck");
    });
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error(), (Error{ErrorKind::check_failed, "stuck"}));
    EXPECT_EQ(asked, from);
  }
}

}  // namespace
}  // namespace demarc::study
