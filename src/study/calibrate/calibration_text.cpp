// Writes what a fit found: for a terminal, as JSON, and in the sources of a device file.
#include <algorithm>

#include "calibrate/figure_rows.hpp"
#include "demarc/base/text.hpp"
#include "demarc/base/version.hpp"
#include "json_parts.hpp"

namespace demarc::study {
namespace {

// "NVIDIA H100 80GB HBM3 (cuda:0, driver 580.159.04)"
std::string card_of(const DeviceContext& device) {
  std::string text = device.name;
  if (device.device.empty()) return text;
  append(text, " ({}", device.device);
  if (!device.driver.empty()) append(text, ", driver {}", device.driver);
  return text + ")";
}

std::string fitted_text(const Calibration& calibration) {
  std::string text;
  for (const FittedParameter& one : calibration.fitted) {
    append(text, "{}{} to {}", text.empty() ? "" : "; ", one.name, one.figure);
  }
  return text;
}

Json residual_json(const Residual& residual, double tolerance) {
  const double error = residual.error();
  return {{"figure", residual.figure.name},
          {"unit", (*find_figure(residual.figure.name))->unit},
          {"measured", residual.figure.value},
          {"spread", residual.figure.spread},
          {"before", residual.before},
          {"fitted", residual.after},
          {"residual", error},
          {"explained", std::abs(error) <= tolerance},
          {"parameters", residual.parameters}};
}

}  // namespace

gpu::Device calibrated_device(const Calibration& calibration) {
  gpu::Device device = calibration.device;
  const FigureSet& figures = calibration.figures;
  const std::string origin =
      figures.source.empty() ? "" : fmt::format(", figures from {}", figures.source);
  device.memory_system->source = fmt::format(
      "fitted by demarc calibrate {} (revision {}) to figures of {} alone, {}{}: {}; the rest as "
      "in "
      "'{}', whose source is: {}",
      version(), revision(), card_of(figures.device), figures.date, origin,
      fitted_text(calibration), calibration.start.name, calibration.start.memory_system->source);
  device.source += fmt::format(
      "; latencies and memory system fitted to figures of {}, {} (memory_system.source)",
      card_of(figures.device), figures.date);
  return device;
}

std::string calibration_text(const Calibration& calibration) {
  std::string text = fmt::format(
      "{}, {}: {} figures of kernels alone on it, simulated with '{}' before and after "
      "the fit\n",
      card_of(calibration.figures.device), calibration.figures.date, calibration.residuals.size(),
      calibration.start.name);
  append(text, "  {:<20} {:>10} {:>10} {:>10} {:<5} {:>9}  fitted to it\n", "figure", "measured",
         "before", "after", "", "residual");
  for (const Residual& one : calibration.residuals) {
    append(text, "  {:<20} {:>10.5g} {:>10.5g} {:>10.5g} {:<5} {:>+7.1f} %  {}\n", one.figure.name,
           one.figure.value, one.before, one.after, (*find_figure(one.figure.name))->unit,
           100 * one.error(), joined(one.parameters, ", "));
  }
  append(text, "  {:<34} {:>10} {:>10}  simulations\n", "parameter", "before", "after");
  for (const FittedParameter& one : calibration.fitted) {
    append(text, "  {:<34} {:>10.5g} {:>10.5g}  {}\n", one.name, one.before, one.after,
           one.evaluations);
  }
  for (const FittedParameter& one : calibration.fitted) {
    if (one.undetermined.empty()) continue;
    append(text, "left at {:.5g}: {}: {}, so it does not determine this number\n", one.before,
           one.name, one.undetermined);
  }
  for (const KeptParameter& one : calibration.kept) {
    append(text, "not fitted: {}: {}\n", one.name, one.reason);
  }
  const auto missed = unexplained(calibration);
  if (missed.empty()) {
    append(text, "every figure is explained within {:.0f} %\n", 100 * calibration.tolerance);
  } else {
    append(text, "not explained within {:.0f} %: {}\n", 100 * calibration.tolerance,
           joined(missed, ", "));
  }
  return text;
}

std::string calibration_json(const Calibration& calibration, const std::string& command) {
  Json json{{"schema", "demarc.calibrate/1"},
            {"context", context_json(calibration.figures.device, command)},
            {"date", calibration.figures.date},
            {"source", calibration.figures.source},
            {"description", calibration.start.name},
            {"tolerance", calibration.tolerance}};
  Json& figures = json["figures"] = Json::array();
  for (const Residual& one : calibration.residuals) {
    figures.push_back(residual_json(one, calibration.tolerance));
  }
  Json& parameters = json["parameters"] = Json::array();
  for (const FittedParameter& one : calibration.fitted) {
    parameters.push_back({{"parameter", one.name},
                          {"before", one.before},
                          {"after", one.after},
                          {"figure", one.figure},
                          {"simulations", one.evaluations}});
    if (!one.undetermined.empty()) parameters.back()["undetermined"] = one.undetermined;
  }
  Json& kept = json["not_fitted"] = Json::array();
  for (const KeptParameter& one : calibration.kept) {
    kept.push_back({{"parameter", one.name}, {"reason", one.reason}});
  }
  json["not_explained"] = unexplained(calibration);
  return json_text(json, 2) + "\n";
}

}  // namespace demarc::study
