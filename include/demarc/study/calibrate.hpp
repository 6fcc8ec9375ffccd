// From a card to a simulated one. Figures of kernels that run alone are measured, and the
// parameters of a memory system are fitted to them. No figure has a neighbour in it, so the
// interference that the fitted device shows remains a forecast.
//
//   DEMARC_TRY(const FigureSet figures, simulate_figures(target, sizes_of, {}, {}));  // or measure
//   DEMARC_TRY(const Calibration found, calibrate(start, figures, {}, {}));
//   DEMARC_CHECK(gpu::write_device("twin.json", calibrated_device(found)));
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

using LaunchParameters = std::map<std::string, std::int64_t>;

// A row of the table of figures (figure_rows()), as it was measured.
struct Figure {
  std::string name;
  double value = 0;   // in the row's unit, above 0
  double spread = 0;  // 95 % half width of the mean, as a share of the value; 0: not known
  LaunchParameters parameters;  // parameters of the row's launch, as it ran
};

struct FigureSet {
  DeviceContext device;
  std::string date;    // YYYY-MM-DD, of the measurement
  std::string source;  // where the numbers are from, if not from a run of this program
  std::vector<Figure> figures;
};

// How often a figure is measured on a card, and the settings of a simulation.
struct FigureOptions {
  StoppingRule rule{3, 20, 100, 0.005, 2};
  std::uint64_t seed = 1;  // seed of the places of pages in a simulation
  unsigned threads = 0;    // simulations side by side; 0: all cores; results do not depend on it
};

// Measures all figures on the card that `executor` drives; each kernel runs alone on it.
// `description` gives the sizes of the launches; it must have as many SMs as the card. If a figure
// cannot be measured, the error is invalid_input and names the figure.
[[nodiscard]] Result<FigureSet> measure_figures(const gpu::Device& description, Executor& executor,
                                                const FigureOptions& options,
                                                const Progress& progress);

// The same figures on a simulated device. `description` gives the sizes.
[[nodiscard]] Result<FigureSet> simulate_figures(const gpu::Device& target,
                                                 const gpu::Device& description,
                                                 const FigureOptions& options,
                                                 const Progress& progress);

// JSON, schema "demarc.calibrate.figures/1". `source` names the text in errors, which give the path
// of the key. A figure without "parameters" has those of the description that it is fitted from.
[[nodiscard]] std::string figures_json(const FigureSet& figures, const std::string& command);
[[nodiscard]] Result<FigureSet> parse_figures(std::string_view text, std::string_view source);
[[nodiscard]] std::string figures_text(const FigureSet& figures);

struct FitOptions {
  double tolerance = 0.05;  // a figure within this share is explained
  FigureOptions figures;
};

struct FittedParameter {
  std::string name;  // key of the device file: "memory_system.port_bytes"
  double before = 0;
  double after = 0;
  std::string figure;        // the figure that it was fitted to
  unsigned evaluations = 0;  // simulations of that figure
  // Why the figure does not determine the parameter, which then stays as it was; empty: it does.
  std::string undetermined = {};
};

// A parameter of the table for which no number was found, and why.
struct KeptParameter {
  std::string name;
  std::string reason;
};

struct Residual {
  Figure figure;
  double before = 0;                    // simulated with the description as it was
  double after = 0;                     // and as it was fitted
  std::vector<std::string> parameters;  // fitted to it
  [[nodiscard]] double error() const { return after / figure.value - 1; }
};

struct Calibration {
  gpu::Device start;
  gpu::Device device;  // with the fitted numbers; its sources are still those of `start`
  FigureSet figures;
  double tolerance = 0;
  std::vector<FittedParameter> fitted;
  std::vector<KeptParameter> kept;
  std::vector<Residual> residuals;  // one per figure, in the order of the table
};

// Fits the parameters in the order of their table, each to the figure that depends on it most and
// on others least. It goes through the table three times, because a later parameter may move an
// earlier one's figure. The result is what was nearest to all figures after one of these passes, or
// before the first. missing_capability if `start` cannot be simulated, and in a build without the
// optimiser.
[[nodiscard]] Result<Calibration> calibrate(const gpu::Device& start, const FigureSet& figures,
                                            const FitOptions& options, const Progress& progress);

// Names of figures that the fitted device misses by more than the tolerance.
[[nodiscard]] std::vector<std::string> unexplained(const Calibration& calibration);

// The fitted device. Its sources say what was fitted to which figures of which card, when and by
// which revision.
[[nodiscard]] gpu::Device calibrated_device(const Calibration& calibration);

[[nodiscard]] std::string calibration_text(const Calibration& calibration);
// JSON, schema "demarc.calibrate/1".
[[nodiscard]] std::string calibration_json(const Calibration& calibration,
                                           const std::string& command);

}  // namespace demarc::study
