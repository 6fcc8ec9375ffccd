// A figure on a simulated device: what ran is recorded once, and simulated again for each set of
// parameters.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "calibrate/figure_rows.hpp"
#include "sim/sim_workload.hpp"

namespace demarc::study {

class SoloSimulation {
 public:
  // `description`: of the figures' sizes.
  SoloSimulation(gpu::Device description, std::uint64_t seed)
      : description_(std::move(description)), seed_(seed) {}

  // Emulates the figure's launch, unless that was done before. Not while value() is at work.
  [[nodiscard]] Result<void> record(const FigureRow& row, const LaunchParameters& parameters);

  // The figure of a recorded launch on `device`, alone. Any number of threads may ask. An error of
  // kind invalid_input: the device's numbers do not fit together.
  [[nodiscard]] Result<double> value(const FigureRow& row, const LaunchParameters& parameters,
                                     const gpu::Device& device) const;

 private:
  gpu::Device description_;
  std::uint64_t seed_;
  std::map<std::string, SimWorkload> recorded_;  // by the spec of its launch
};

}  // namespace demarc::study
