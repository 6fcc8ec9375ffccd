#include <algorithm>
#include <cmath>

#include "demarc/cuda/topology_probe.hpp"

namespace demarc::cuda {
namespace {

constexpr double least_separation = 4;
constexpr int power_steps = 60;

// Subtracts the mean of each line and of each SM: what is left is who is near to what.
std::vector<std::vector<double>> centred(const std::vector<std::vector<double>>& latency) {
  auto matrix = latency;
  const std::size_t rows = matrix.size();
  const std::size_t columns = matrix[0].size();
  for (std::size_t c = 0; c < columns; ++c) {
    double mean = 0;
    for (const auto& row : matrix) mean += row[c] / static_cast<double>(rows);
    for (auto& row : matrix) row[c] -= mean;
  }
  for (auto& row : matrix) {
    double mean = 0;
    for (const double value : row) mean += value / static_cast<double>(columns);
    for (double& value : row) value -= mean;
  }
  return matrix;
}

// Coordinates of the rows along the axis of greatest spread (power iteration).
std::vector<double> first_component(const std::vector<std::vector<double>>& matrix) {
  const std::size_t columns = matrix[0].size();
  // Starts from the row of greatest length: never orthogonal to the axis.
  std::vector<double> axis;
  double longest = -1;
  for (const auto& row : matrix) {
    double length = 0;
    for (const double value : row) length += value * value;
    if (length > longest) {
      longest = length;
      axis = row;
    }
  }
  std::vector<double> score(matrix.size(), 0);
  for (int step = 0; step < power_steps; ++step) {
    double norm = 0;
    for (const double value : axis) norm += value * value;
    if (norm <= 0) return score;
    for (double& value : axis) value /= std::sqrt(norm);
    for (std::size_t r = 0; r < matrix.size(); ++r) {
      score[r] = 0;
      for (std::size_t c = 0; c < columns; ++c) score[r] += matrix[r][c] * axis[c];
    }
    for (std::size_t c = 0; c < columns; ++c) {
      axis[c] = 0;
      for (std::size_t r = 0; r < matrix.size(); ++r) axis[c] += matrix[r][c] * score[r];
    }
  }
  return score;
}

}  // namespace

std::optional<Sides> find_sides(const std::vector<std::vector<double>>& latency) {
  if (latency.size() < 4 || latency[0].size() < 4) return std::nullopt;
  for (const auto& row : latency) {
    if (row.size() != latency[0].size()) return std::nullopt;
  }
  const std::vector<double> score = first_component(centred(latency));
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
