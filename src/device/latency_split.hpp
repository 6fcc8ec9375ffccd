// The parts of cluster_latencies(): distances, means, and the best cut of some rows in two.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "demarc/device/latency_clusters.hpp"

namespace demarc::gpu {

using Rows = std::vector<std::uint32_t>;

inline const float* latency_row(const LatencyMatrix& matrix, std::size_t i) {
  return matrix.values.data() + i * matrix.dimensions;
}

// At least `limit` where it is not below: the rest is not looked at then.
[[nodiscard]] double squared_distance(const float* a, const float* b, std::size_t dimensions,
                                      double limit = std::numeric_limits<double>::max());

[[nodiscard]] std::vector<float> mean_of(const LatencyMatrix& matrix, const Rows& rows);

struct Split {
  Rows low;
  Rows high;
  double score = 0;  // distance of the two means over the spread inside the parts
};

// The best cut in two along the main direction (least sum of squares). Both parts are empty where
// there are fewer than twice `least_size` rows.
[[nodiscard]] Split best_split(const LatencyMatrix& matrix, const Rows& rows,
                               std::uint32_t least_size);

}  // namespace demarc::gpu
