// Which SMs lie on which side of the L2, by the axis along which their latencies spread most.
#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "card/topology_probe.hpp"

namespace demarc::cuda {
namespace {

constexpr double least_separation = 4;
constexpr int power_steps = 60;

// Less the mean of each line and of each SM: what is left is who is near to what.
Eigen::MatrixXd centred(const std::vector<std::vector<double>>& latency) {
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(latency.size()),
                         static_cast<Eigen::Index>(latency[0].size()));
  for (Eigen::Index r = 0; r < matrix.rows(); ++r) {
    matrix.row(r) = Eigen::Map<const Eigen::RowVectorXd>(
        latency[static_cast<std::size_t>(r)].data(), matrix.cols());
  }
  const Eigen::RowVectorXd mean_of_column = matrix.colwise().mean();
  matrix.rowwise() -= mean_of_column;
  const Eigen::VectorXd mean_of_row = matrix.rowwise().mean();
  matrix.colwise() -= mean_of_row;
  return matrix;
}

// Coordinates of the rows along the axis of greatest spread (power iteration).
Eigen::VectorXd first_component(const Eigen::MatrixXd& matrix) {
  // Starts from the row of greatest length: never orthogonal to the axis.
  Eigen::Index longest = 0;
  matrix.rowwise().squaredNorm().maxCoeff(&longest);
  Eigen::VectorXd axis = matrix.row(longest);
  Eigen::VectorXd score = Eigen::VectorXd::Zero(matrix.rows());
  for (int step = 0; step < power_steps; ++step) {
    const double norm = axis.norm();
    if (norm <= 0) return score;
    axis /= norm;
    score = matrix * axis;
    axis = matrix.transpose() * score;
  }
  return score;
}

}  // namespace

std::optional<Sides> find_sides(const std::vector<std::vector<double>>& latency) {
  if (latency.size() < 4 || latency[0].size() < 4) return std::nullopt;
  for (const auto& row : latency) {
    if (row.size() != latency[0].size()) return std::nullopt;
  }
  const Eigen::VectorXd score = first_component(centred(latency));
  Sides sides;
  double mean[2] = {0, 0};
  double count[2] = {0, 0};
  for (const double value : score) {
    const std::size_t side = value < 0 ? 0 : 1;
    mean[side] += value;
    count[side] += 1;
  }
  if (count[0] < 2 || count[1] < 2) return std::nullopt;
  mean[0] /= count[0];
  mean[1] /= count[1];
  double variance = 0;
  for (const double value : score) {
    const double away = value - mean[value < 0 ? 0 : 1];
    variance += away * away / static_cast<double>(score.size());
  }
  sides.separation = (mean[1] - mean[0]) / std::max(std::sqrt(variance), 1e-9);
  // Two halves of one bell curve stand 2.6 of these units apart; two groups far more.
  if (sides.separation < least_separation) return std::nullopt;
  const bool first = score[0] < 0;
  for (const double value : score) sides.side.push_back((value < 0) == first ? 0 : 1);
  return sides;
}

}  // namespace demarc::cuda
