// demarc translate --measure: a launch split over real cards, beside its simulation.
#pragma once

#include <string>
#include <vector>

#include "demarc/sim/translation/report.hpp"
#include "demarc/workload/load.hpp"

namespace demarc::cli {

struct MeasureRequest {
  std::vector<std::string> cards;  // "cuda:0", "cuda:1"
  std::uint32_t runs = 5;
};

// The launch on those cards, its pages where the simulation has them.
struct MeasuredSplit {
  struct Kernel {
    std::string kernel;
    std::vector<double> milliseconds;  // of each card
  };
  std::string name;                  // of the launch
  std::vector<std::string> cards;    // names
  std::vector<std::uint64_t> pages;  // on each card
  std::vector<Kernel> kernels;       // of the run whose time is the median
  double milliseconds = 0;           // that run: the sum of the slower card of each kernel
  double fastest = 0;                // of all runs
  double slowest = 0;
  std::string check;  // "passed", or "none" where the launch has no reference
};

// Refuses what cannot be measured, before anything is simulated: as many cards as the settings have
// GPUs, equal runs of blocks, pages that stay where they lie.
[[nodiscard]] Result<std::vector<std::uint32_t>> cards_of(
    const MeasureRequest& request, const sim::translation::Settings& settings);

[[nodiscard]] Result<MeasuredSplit> measure_split(const std::vector<std::uint32_t>& cards,
                                                  const MeasureRequest& request,
                                                  const sim::translation::Settings& settings,
                                                  const workload::LoadedLaunch& loaded,
                                                  const sim::translation::Application& application);

[[nodiscard]] std::string measured_text(const MeasuredSplit& measured,
                                        const sim::translation::Comparison& simulated);
// schema "demarc.translate.measured/1"
[[nodiscard]] std::string measured_json(const MeasuredSplit& measured,
                                        const sim::translation::Comparison& simulated);

}  // namespace demarc::cli
