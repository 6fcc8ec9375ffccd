// Predicted hit rates against what the counters of an H100 said of the same launches
// (docs/measurements/locality.md).
#include <gtest/gtest.h>

#include "measured.hpp"
#include "paths.hpp"

namespace demarc::locality {
namespace {

std::vector<measured::Row> measured_rows() {
  const auto rows = measured::read(test::source_dir() / "tests/locality/measured/h100.csv");
  return rows ? *rows : std::vector<measured::Row>{};
}

class HitRates : public ::testing::TestWithParam<measured::Row> {};

TEST_P(HitRates, are_within_twelve_points_of_the_counters_in_l2_and_four_in_l1) {
  const measured::Row& row = GetParam();
  const auto device = gpu::find_device("h100-sxm");
  ASSERT_TRUE(device) << device.error().message;
  const auto predicted = measured::predict(row, *device);
  ASSERT_TRUE(predicted) << predicted.error().message;
  const measured::Errors errors = measured::errors(row, predicted->whole);
  EXPECT_LT(errors.l1, 4);
  EXPECT_LT(errors.l2, 12);
}

INSTANTIATE_TEST_SUITE_P(H100, HitRates, ::testing::ValuesIn(measured_rows()),
                         [](const auto& one) { return one.param.launch + "_" + one.param.kernel; });

TEST(MeasuredHitRates, cover_the_seven_workloads_and_thirty_more) {
  EXPECT_GE(measured_rows().size(), 45U);
}

}  // namespace
}  // namespace demarc::locality
