// Tests that planted kinds of latency rows are the clusters that are found.
#include "demarc/device/latency_clusters.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "demarc/base/random.hpp"

namespace demarc::gpu {
namespace {

// Rows of `kinds` kinds in turn, whose latencies lie about those of their kind with a
// standard deviation of `jitter`.
LatencyMatrix planted_latencies(std::uint32_t kinds, std::uint32_t rows, double jitter) {
  Random random(7);
  LatencyMatrix matrix;
  matrix.dimensions = 6;
  std::vector<double> centers(std::size_t{kinds} * matrix.dimensions);
  for (double& center : centers) center = 200 + 60 * random.uniform();
  for (std::uint32_t r = 0; r < rows; ++r) {
    for (std::uint32_t k = 0; k < matrix.dimensions; ++k) {
      matrix.values.push_back(static_cast<float>(
          centers[std::size_t{r % kinds} * matrix.dimensions + k] + jitter * random.normal()));
    }
  }
  return matrix;
}

TEST(LatencyClusters, planted_kinds_are_the_clusters_found) {
  const auto matrix = planted_latencies(40, 4000, 0.5);
  const auto found = cluster_latencies(matrix, 20);
  ASSERT_EQ(found.sizes, std::vector<std::uint32_t>(40, 100));
  for (std::size_t r = 0; r < matrix.count(); ++r) {
    EXPECT_EQ(found.cluster[r], found.cluster[r % 40]) << "row " << r;
  }
  EXPECT_NEAR(found.noise, 0.5, 0.02);
}

// Centres are those of the rows they were found from, whatever was left out of the search.
TEST(LatencyClusters, every_row_is_in_the_cluster_whose_centre_is_nearest) {
  const auto matrix = planted_latencies(12, 1200, 6);
  const auto found = cluster_latencies(matrix, 20);
  ASSERT_GT(found.sizes.size(), 4U);
  std::size_t elsewhere = 0;
  for (std::size_t r = 0; r < matrix.count(); ++r) {
    std::uint32_t nearest = 0;
    double least = 1e30;
    double second = 1e30;
    for (std::uint32_t c = 0; c < found.centers.count(); ++c) {
      double sum = 0;
      for (std::uint32_t k = 0; k < matrix.dimensions; ++k) {
        sum += std::pow(matrix.row(r)[k] - found.centers.row(c)[k], 2.0);
      }
      second = std::min(second, std::max(sum, least));
      if (sum < least) nearest = c;
      least = std::min(sum, least);
    }
    elsewhere += found.cluster[r] == nearest ? 0U : 1U;
    const auto match = found.match(matrix.row(r));
    EXPECT_EQ(match.cluster, nearest);
    EXPECT_NEAR(match.distance, std::sqrt(least), 1e-3);
    EXPECT_NEAR(match.clarity, std::sqrt(second / least), 1e-3);
  }
  // The last means are taken of rows that went by those before.
  EXPECT_LT(elsewhere, matrix.count() / 50);
}

TEST(LatencyClusters, rows_too_few_for_a_cluster_are_one) {
  const auto found = cluster_latencies(planted_latencies(2, 3, 1), 8);
  EXPECT_EQ(found.sizes, std::vector<std::uint32_t>{3});
  EXPECT_EQ(found.cluster, std::vector<std::uint32_t>(3, 0));
  EXPECT_TRUE(cluster_latencies({}, 8).sizes.empty());
}

}  // namespace
}  // namespace demarc::gpu
