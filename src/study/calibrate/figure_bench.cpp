// Simulates figures, and computes their distance from the measured ones.
#include "calibrate/figure_bench.hpp"

#include <algorithm>
#include <cmath>

#include "demarc/base/parallel.hpp"

namespace demarc::study {
namespace {

// For a figure whose name was looked up before.
const FigureRow& row_of_figure(const Figure& figure) {
  return **find_figure(figure.name);
}

}  // namespace

FigureBench::FigureBench(const gpu::Device& start, const FigureSet& set,
                         const FigureOptions& options)
    : simulation_(start, options.seed), threads_(options.threads) {
  for (const FigureRow& row : figure_rows()) {
    for (const Figure& figure : set.figures) {
      if (figure.name != row.name) continue;
      figures_.push_back(figure);
      if (figure.parameters.empty()) figures_.back().parameters = row.sizes(start);
    }
  }
}

Result<void> FigureBench::record(const Progress& progress) {
  for (const Figure& figure : figures_) {
    report_progress(progress, 0, fmt::format("emulating {}", figure.name));
    DEMARC_CHECK(simulation_.record(row_of_figure(figure), figure.parameters));
  }
  return {};
}

const Figure* FigureBench::speaks_of(const ParameterRow& parameter) const {
  for (const std::string_view name : parameter.figures) {
    const auto found = std::find_if(figures_.begin(), figures_.end(),
                                    [&](const Figure& figure) { return figure.name == name; });
    if (found != figures_.end()) return &*found;
  }
  return nullptr;
}

Result<double> FigureBench::simulated(const Figure& figure, const gpu::Device& device) const {
  return simulation_.value(row_of_figure(figure), figure.parameters, device);
}

Result<std::vector<double>> FigureBench::simulated(const gpu::Device& device) const {
  std::vector<Result<double>> results(figures_.size());
  parallel_for(figures_.size(), threads_,
               [&](std::size_t i) { results[i] = simulated(figures_[i], device); });
  std::vector<double> values;
  for (const Result<double>& result : results) {
    if (!result) return tl::unexpected(result.error());
    values.push_back(*result);
  }
  return values;
}

Result<double> FigureBench::error(const Figure& figure, const gpu::Device& device) const {
  const auto value = simulated(figure, device);
  if (value) return std::abs(std::log(*value / figure.value));
  if (value.error().kind == ErrorKind::invalid_input) return impossible;
  return tl::unexpected(value.error());
}

Result<double> FigureBench::error(const gpu::Device& device) const {
  DEMARC_TRY(const std::vector<double> values, simulated(device));
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double off = std::log(values[i] / figures_[i].value);
    sum += off * off;
  }
  return std::sqrt(sum / static_cast<double>(values.size()));
}

}  // namespace demarc::study
