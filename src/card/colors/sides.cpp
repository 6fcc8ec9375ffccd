// Finds which SMs lie on which side of the L2, by the axis along which their latencies spread most.
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>

#include "topology_probe.hpp"

namespace demarc::cuda {
namespace {

constexpr double least_separation = 4;

// Less the mean of each line and of each SM: what is left is who is near to what.
Eigen::MatrixXd centred(const SmLatencies& latency) {
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(latency.size()),
                         static_cast<Eigen::Index>(latency.front().size()));
  for (Eigen::Index r = 0; r < matrix.rows(); ++r) {
    matrix.row(r) =
        Eigen::Map<const Eigen::RowVectorXd>(latency[gpu::SmIndex(r)].data(), matrix.cols());
  }
  const Eigen::RowVectorXd mean_of_column = matrix.colwise().mean();
  matrix.rowwise() -= mean_of_column;
  const Eigen::VectorXd mean_of_row = matrix.rowwise().mean();
  matrix.colwise() -= mean_of_row;
  return matrix;
}

// Coordinates of the rows along the axis of greatest spread, in units of their own.
Eigen::VectorXd first_component(const Eigen::MatrixXd& matrix) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> axes(matrix * matrix.transpose());
  return axes.eigenvectors().rightCols<1>();  // they stand in the order of their spreads
}

}  // namespace

std::optional<Sides> find_sides(const SmLatencies& latency) {
  if (latency.empty() || latency.front().size() < 4) return std::nullopt;
  for (const auto& row : latency) {
    if (row.size() != latency.front().size()) return std::nullopt;
  }
  const Eigen::VectorXd score = first_component(centred(latency));
  Sides sides;
  std::array<double, 2> mean{};
  std::array<double, 2> count{};
  for (const double value : score) {
    const std::size_t side = value < 0 ? 0 : 1;
    mean[side] += value;
    count[side] += 1;
  }
  if (*std::min_element(count.begin(), count.end()) < 2) return std::nullopt;
  mean[0] /= count[0];
  mean[1] /= count[1];
  double variance = 0;
  for (const double value : score) {
    const double away = value - mean[value < 0 ? 0 : 1];
    variance += away * away / static_cast<double>(score.size());
  }
  sides.separation = (mean[1] - mean[0]) / std::sqrt(variance);
  // Two halves of one bell curve stand 2.6 of these units apart; two groups far more.
  if (sides.separation < least_separation) return std::nullopt;
  const bool first = score[0] < 0;
  for (const double value : score) sides.side.push_back((value < 0) == first ? 0 : 1);
  return sides;
}

}  // namespace demarc::cuda
