// Finds the best cut of some rows of latencies in two, along the direction in which they spread
// most.
#include "latency_split.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <utility>

namespace demarc::gpu {

double squared_distance(const float* a, const float* b, std::size_t dimensions, double limit) {
  constexpr std::size_t at_once = 4;
  double sum = 0;
  std::size_t k = 0;
  while (k < dimensions && sum < limit) {
    for (const std::size_t end = std::min(k + at_once, dimensions); k < end; ++k) {
      const double difference = static_cast<double>(a[k]) - static_cast<double>(b[k]);
      sum += difference * difference;
    }
  }
  return sum;
}

std::vector<float> mean_of(const LatencyMatrix& matrix, const Rows& rows) {
  std::vector<double> sums(matrix.dimensions, 0);
  double* sum = sums.data();
  for (const auto r : rows) {
    const float* row = latency_row(matrix, r);
    for (std::size_t k = 0; k < matrix.dimensions; ++k) sum[k] += static_cast<double>(row[k]);
  }
  std::vector<float> mean(matrix.dimensions);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    mean[k] = static_cast<float>(sums[k] / static_cast<double>(rows.size()));
  }
  return mean;
}

namespace {

// Latencies of some rows about their mean, a row of the matrix for each.
Eigen::MatrixXd centered(const LatencyMatrix& matrix, const Rows& rows) {
  const auto columns = static_cast<Eigen::Index>(matrix.dimensions);
  Eigen::MatrixXd values(static_cast<Eigen::Index>(rows.size()), columns);
  for (Eigen::Index i = 0; i < values.rows(); ++i) {
    const float* const row = latency_row(matrix, rows[static_cast<std::size_t>(i)]);
    values.row(i) = Eigen::Map<const Eigen::RowVectorXf>(row, columns).cast<double>();
  }
  const auto mean = mean_of(matrix, rows);
  values.rowwise() -= Eigen::Map<const Eigen::RowVectorXf>(mean.data(), columns).cast<double>();
  return values;
}

// Direction in which the rows spread most (power iteration on their covariance).
Eigen::VectorXd main_direction(const Eigen::MatrixXd& rows) {
  const Eigen::MatrixXd covariance = rows.transpose() * rows;
  // Start along the coordinate of the largest variance, tilted so that no axis is exactly absent.
  Eigen::VectorXd direction = Eigen::VectorXd::Constant(rows.cols(), 0.01);
  Eigen::Index widest = 0;
  covariance.diagonal().maxCoeff(&widest);
  direction[widest] = 1;
  for (int step = 0; step < 40; ++step) {
    Eigen::VectorXd next = covariance * direction;
    const double norm = next.norm();
    if (norm == 0) break;
    next /= norm;
    if (next == direction) break;
    direction.swap(next);
  }
  return direction;
}

}  // namespace

Split best_split(const LatencyMatrix& matrix, const Rows& rows, std::uint32_t least_size) {
  Split split;
  if (rows.size() < 2 * static_cast<std::size_t>(least_size)) return split;
  const Eigen::MatrixXd about_mean = centered(matrix, rows);
  const Eigen::VectorXd along = about_mean * main_direction(about_mean);
  std::vector<std::pair<double, std::uint32_t>> projected;
  projected.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    projected.emplace_back(along[static_cast<Eigen::Index>(i)], rows[i]);
  std::sort(projected.begin(), projected.end());
  const double count = static_cast<double>(projected.size());
  double total = 0;
  double total_square = 0;
  for (const auto& [at, r] : projected) {
    total += at;
    total_square += at * at;
  }
  double left = 0;
  double best_between = -1;
  std::size_t best_at = 0;
  for (std::size_t i = 0; i + least_size < projected.size(); ++i) {
    left += projected[i].first;
    if (i + 1 < least_size) continue;
    const double n = static_cast<double>(i + 1);
    const double left_mean = left / n;
    const double right_mean = (total - left) / (count - n);
    const double between =
        n * (count - n) / count * (left_mean - right_mean) * (left_mean - right_mean);
    if (between > best_between) {
      best_between = between;
      best_at = i + 1;
    }
  }
  if (best_at == 0) return split;
  for (std::size_t i = 0; i < projected.size(); ++i) {
    (i < best_at ? split.low : split.high).push_back(projected[i].second);
  }
  const double n = static_cast<double>(best_at);
  const double gap = std::sqrt(best_between * count / (n * (count - n)));
  const double within =
      std::sqrt(std::max((total_square - total * total / count - best_between) / count, 1e-9));
  split.score = gap / within;
  return split;
}

}  // namespace demarc::gpu
