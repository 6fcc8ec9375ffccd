// The figures that a fit has, and how far a simulated device is from each.
#pragma once

#include <vector>

#include "calibrate/parameters.hpp"
#include "calibrate/solo_simulation.hpp"

namespace demarc::study {

class FigureBench {
 public:
  // Figures come in the order of the table; one without parameters has those of the row for
  // `start`.
  FigureBench(const gpu::Device& start, const FigureSet& set, const FigureOptions& options);

  // Emulates all launches. Before anything is simulated.
  [[nodiscard]] Result<void> record(const Progress& progress);

  [[nodiscard]] const std::vector<Figure>& figures() const { return figures_; }
  // The one that the parameter is fitted to; null: none was measured.
  [[nodiscard]] const Figure* speaks_of(const ParameterRow& parameter) const;

  // The figure on `device`.
  [[nodiscard]] Result<double> simulated(const Figure& figure, const gpu::Device& device) const;
  // All of them, side by side.
  [[nodiscard]] Result<std::vector<double>> simulated(const gpu::Device& device) const;
  // How far the figure on `device` is from the measured one, as the logarithm of their ratio, 0 or
  // more; `impossible` where the device's numbers do not fit together.
  [[nodiscard]] Result<double> error(const Figure& figure, const gpu::Device& device) const;
  static constexpr double impossible = 1e6;
  // Root of the mean square of those of all figures; an error where one cannot be simulated.
  [[nodiscard]] Result<double> error(const gpu::Device& device) const;

 private:
  SoloSimulation simulation_;
  unsigned threads_;
  std::vector<Figure> figures_;
};

}  // namespace demarc::study
