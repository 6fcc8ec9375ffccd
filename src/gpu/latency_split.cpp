#include "latency_split.hpp"

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

// Latencies of some rows about their mean, a column after the other.
struct Centered {
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::vector<double> values;

  [[nodiscard]] const double* column(std::size_t k) const { return values.data() + k * rows; }
};

Centered centered(const LatencyMatrix& matrix, const Rows& rows) {
  const auto mean = mean_of(matrix, rows);
  Centered result{matrix.dimensions, rows.size(), {}};
  result.values.resize(result.columns * result.rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float* row = latency_row(matrix, rows[i]);
    double* to = result.values.data() + i;
    for (std::size_t k = 0; k < result.columns; ++k) {
      to[k * result.rows] = static_cast<double>(row[k]) - static_cast<double>(mean[k]);
    }
  }
  return result;
}

// Sums of the products of column `i` with each column from it on, to covariance[i * columns + j].
void covary(const Centered& rows, std::size_t i, double* covariance) {
  const double* a = rows.column(i);
  std::size_t j = i;
  // Four at a time: each element is read for four products.
  for (; j + 4 <= rows.columns; j += 4) {
    const double* b = rows.column(j);
    const double* c = b + rows.rows;
    const double* d = c + rows.rows;
    const double* e = d + rows.rows;
    double sum_b = 0;
    double sum_c = 0;
    double sum_d = 0;
    double sum_e = 0;
    for (std::size_t r = 0; r < rows.rows; ++r) {
      const double at = a[r];
      sum_b += at * b[r];
      sum_c += at * c[r];
      sum_d += at * d[r];
      sum_e += at * e[r];
    }
    double* to = covariance + i * rows.columns + j;
    to[0] = sum_b;
    to[1] = sum_c;
    to[2] = sum_d;
    to[3] = sum_e;
  }
  for (; j < rows.columns; ++j) {
    const double* b = rows.column(j);
    double sum = 0;
    for (std::size_t r = 0; r < rows.rows; ++r) sum += a[r] * b[r];
    covariance[i * rows.columns + j] = sum;
  }
}

// Direction in which the rows spread most (power iteration on their covariance).
std::vector<double> main_direction(const Centered& rows) {
  const std::size_t n = rows.columns;
  std::vector<double> covariance(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    covary(rows, i, covariance.data());
    for (std::size_t j = 0; j < i; ++j) covariance[i * n + j] = covariance[j * n + i];
  }
  // Start along the coordinate of the largest variance, tilted so that no axis is exactly absent.
  std::vector<double> direction(n, 0.01);
  std::size_t widest = 0;
  for (std::size_t i = 1; i < n; ++i) {
    if (covariance[i * n + i] > covariance[widest * n + widest]) widest = i;
  }
  direction[widest] = 1;
  std::vector<double> next(n, 0);
  for (int step = 0; step < 40; ++step) {
    double norm = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double* row = covariance.data() + i * n;
      const double* at = direction.data();
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += row[j] * at[j];
      next[i] = sum;
      norm += sum * sum;
    }
    norm = std::sqrt(norm);
    if (norm == 0) break;
    for (double& value : next) value /= norm;
    if (next == direction) break;
    direction.swap(next);
  }
  return direction;
}

}  // namespace

Split best_split(const LatencyMatrix& matrix, const Rows& rows, std::uint32_t least_size) {
  Split split;
  if (rows.size() < 2 * static_cast<std::size_t>(least_size)) return split;
  const Centered about_mean = centered(matrix, rows);
  const auto direction = main_direction(about_mean);
  std::vector<double> along(rows.size(), 0);
  for (std::size_t k = 0; k < about_mean.columns; ++k) {
    const double* column = about_mean.column(k);
    const double weight = direction[k];
    double* at = along.data();
    for (std::size_t i = 0; i < about_mean.rows; ++i) at[i] += column[i] * weight;
  }
  std::vector<std::pair<double, std::uint32_t>> projected;
  projected.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) projected.emplace_back(along[i], rows[i]);
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
