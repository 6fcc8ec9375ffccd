// demarc calibrate: measures a card's figures and fits a simulated device to them.
#include <chrono>
#include <ctime>
#include <memory>

#include "demarc/base/files.hpp"
#include "demarc/device/device_ref.hpp"
#include "demarc/study/calibrate.hpp"
#include "demarc/study/gpu_executor.hpp"
#include "verb.hpp"

namespace demarc::cli {
namespace {

struct CalibrateOptions {
  std::string device = "cuda:0";
  bool device_given = false;
  std::string description;
  std::string figures;
  std::string save_figures;
  std::string output;
  std::string json;
  bool measure_only = false;
  double tolerance_percent = 5;
  std::uint32_t samples = 20;
  double longest = 2;
  std::uint64_t seed = 1;
  unsigned threads = 0;

  [[nodiscard]] study::FigureOptions how() const {
    study::FigureOptions how;
    how.rule.least = samples;
    how.rule.most = 5 * samples;
    how.rule.longest_seconds = longest;
    how.seed = seed;
    how.threads = threads;
    return how;
  }
};

// What a fit begins with, and what it is fitted to.
struct Ground {
  gpu::Device description;
  study::FigureSet figures;
};

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

Result<void> check(const CalibrateOptions& options) {
  if (!options.figures.empty() && options.device_given) {
    return invalid_input("--figures and --device name two sources of figures: leave one out");
  }
  if (options.measure_only) {
    if (!options.output.empty() || !options.json.empty()) {
      return invalid_input("--measure-only fits nothing: leave it or {} out",
                           options.output.empty() ? "--json" : "-o");
    }
    if (!options.figures.empty()) {
      return invalid_input("--figures FILE has measured figures: leave --measure-only out");
    }
  }
  return {};
}

Result<Ground> from_file(const CalibrateOptions& options) {
  Ground ground;
  DEMARC_TRY(const std::string text, read_file(options.figures));
  DEMARC_TRY(ground.figures, study::parse_figures(text, options.figures));
  DEMARC_TRY(ground.description,
             gpu::describe_card(ground.figures.device.name, options.description));
  return ground;
}

Result<Ground> from_simulation(const CalibrateOptions& options, const std::string& name) {
  Ground ground;
  DEMARC_TRY(const gpu::Device target, gpu::find_device(name));
  DEMARC_TRY(ground.description,
             gpu::find_device(options.description.empty() ? name : options.description));
  DEMARC_TRY(ground.figures, study::simulate_figures(target, ground.description, options.how(),
                                                     terminal_progress()));
  ground.figures.device.device = options.device;
  return ground;
}

Result<Ground> from_card(const CalibrateOptions& options, std::uint32_t index) {
  Ground ground;
  if (!options.description.empty()) DEMARC_CHECK(gpu::find_device(options.description));
  study::GpuExecutorOptions gpu;
  gpu.device = index;
  gpu.program = "/proc/self/exe";
  gpu.description = options.description;
  study::take_away_on_signals();
  DEMARC_CHECK(check_driver(options.device));
  DEMARC_CHECK(tell_of_others("calibrate", options.device));
  DEMARC_TRY(const auto executor, study::make_gpu_executor(gpu));
  DEMARC_TRY(ground.description, executor->description());
  DEMARC_TRY(ground.figures, study::measure_figures(ground.description, *executor, options.how(),
                                                    terminal_progress()));
  return ground;
}

Result<Ground> ground_of(const CalibrateOptions& options) {
  if (!options.figures.empty()) return from_file(options);
  DEMARC_TRY(const gpu::GpuRef ref, gpu::parse_gpu_ref(options.device));
  const auto* card = std::get_if<gpu::CardRef>(&ref);
  DEMARC_TRY(Ground ground, card != nullptr
                                ? from_card(options, card->index)
                                : from_simulation(options, std::get<gpu::SimulatedRef>(ref).name));
  ground.figures.date = today();
  return ground;
}

Result<void> run_calibrate(const CalibrateOptions& options) {
  DEMARC_CHECK(check(options));
  DEMARC_TRY(const Ground ground, ground_of(options));
  if (!options.save_figures.empty()) {
    DEMARC_CHECK(emit(options.save_figures, study::figures_json(ground.figures, command_line())));
  }
  if (options.measure_only) {
    return options.save_figures == "-" ? Result<void>()
                                       : emit("-", study::figures_text(ground.figures));
  }
  study::FitOptions fit;
  fit.tolerance = options.tolerance_percent / 100;
  fit.figures = options.how();
  DEMARC_TRY(const study::Calibration found,
             study::calibrate(ground.description, ground.figures, fit, terminal_progress()));
  if (!options.output.empty()) {
    DEMARC_CHECK(gpu::write_device(options.output, study::calibrated_device(found)));
  }
  return emit_result(
      options.json, "-", [&] { return study::calibration_json(found, command_line()); },
      [&] { return options.save_figures == "-" ? "" : study::calibration_text(found); });
}

const RegisterVerb registered_calibrate({
    103,
    "calibrate",
    "measure how fast kernels run alone on a card, and fit a simulated device to the figures",
    "demarc calibrate --device cuda:0 -o twin.json && demarc isolate --device sim:twin.json",
    [](CLI::App& app) -> std::function<Result<void>()> {
      auto options = std::make_shared<CalibrateOptions>();
      CLI::Option* device =
          app.add_option("--device", options->device,
                         "GPU to measure: cuda:N, or sim:NAME to fit to a simulated device");
      app.add_option("--description", options->description,
                     "description from which the fit begins: a file or a name (default: the "
                     "built-in one of the card)");
      app.add_option("--figures", options->figures,
                     "fit to the figures of this file, and measure nothing");
      add_output(app, "-o,--output", options->output,
                 "write the fitted device to this file, for --device sim:FILE");
      add_json(app, options->json, "figures, residuals and parameters", {"demarc.calibrate/1"});
      add_output(app, "--save-figures", options->save_figures,
                 "write the measured figures to this file, for --figures");
      app.add_flag("--measure-only", options->measure_only, "measure, and fit nothing");
      app.add_option("--tolerance", options->tolerance_percent,
                     "percentage by which the fitted device may miss a figure that it explains")
          ->type_name(percent_type)
          ->check(CLI::Range(0.1, 50.0));
      app.add_option("--samples", options->samples,
                     "least number of runs per figure on a card; the most is five times as many")
          ->check(CLI::Range(1, 10000));
      app.add_option("--longest", options->longest, "seconds that the runs of a figure may take");
      app.add_option("--seed", options->seed, "seed of the places of pages in simulations");
      app.add_option("--threads", options->threads,
                     "simulations at a time; 0 means all cores; the results do not depend on it");
      return [options, device] {
        options->device_given = device->count() > 0;
        return run_calibrate(*options);
      };
    },
});

}  // namespace
}  // namespace demarc::cli
