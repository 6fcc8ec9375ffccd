// A launch split over real cards beside its simulation on several GPUs (demarc translate
// --measure).
#pragma once

#include <string>
#include <vector>

#include "demarc/driver/gpu.hpp"
#include "demarc/sim/translation/report.hpp"
#include "demarc/workload/load.hpp"

namespace demarc::study {

// The launch on those cards. Its pages lie where the simulation has them.
struct MeasuredSplit {
  struct Kernel {
    std::string kernel;
    std::vector<double> milliseconds;  // per card
  };
  std::string name;                  // name of the launch
  std::vector<std::string> cards;    // names
  std::vector<std::uint64_t> pages;  // on each card
  std::vector<Kernel> kernels;       // kernels of the run whose time is the median
  double milliseconds = 0;           // of that run: the sum over the kernels of the slower card's
                                     // time
  double fastest = 0;                // of all runs
  double slowest = 0;
  std::string check;  // "passed", or "none" where the launch has no reference
};

// Opens those cards, as many as the settings have GPUs. invalid_input if the settings split the
// work or place pages in a way that cards cannot. missing_capability if the cards do not reach each
// other or cannot map pages of that size. Call it before the launch is emulated.
[[nodiscard]] Result<std::vector<cuda::GpuPointer>> open_split_cards(
    const std::vector<std::uint32_t>& cards, const sim::translation::Settings& settings);

// Makes `runs` runs, at least one. check_failed if the outputs do not meet the launch's reference.
[[nodiscard]] Result<MeasuredSplit> measure_split(const std::vector<cuda::GpuPointer>& gpus,
                                                  std::uint32_t runs,
                                                  const sim::translation::Settings& settings,
                                                  const workload::LoadedLaunch& loaded,
                                                  const sim::translation::Application& application);

// `simulated` may have no application; then only the measured times are shown.
[[nodiscard]] std::string measured_text(const MeasuredSplit& measured,
                                        const sim::translation::Comparison& simulated);
// schema "demarc.translate.measured/1"
[[nodiscard]] std::string measured_json(const MeasuredSplit& measured,
                                        const sim::translation::Comparison& simulated);

}  // namespace demarc::study
