// Fits parameter after parameter, each to the figure that depends on it.
#include <algorithm>
#include <cmath>

#include "calibrate/figure_bench.hpp"
#include "calibrate/optimise.hpp"
#include "demarc/base/text.hpp"
#include "demarc/sim/memory/spec.hpp"

namespace demarc::study {
namespace {

constexpr int fit_passes = 3;
// A fit ends when its figures are within this part of the tolerance, and what gains less is no
// gain.
constexpr double close_enough = 0.1;

// A quarter more or less, or a twentieth of an axis without factors; at least 1 where only whole
// numbers count.
double neighbour_of(const Axis& axis, double value, bool more) {
  double step = axis.logarithmic ? value * (more ? 0.25 : 0.2) : (axis.high - axis.low) / 20;
  if (axis.whole) step = std::max(std::round(step), 1.0);
  return std::clamp(more ? value + step : value - step, axis.low, axis.high);
}

class Fit {
 public:
  Fit(const FigureBench& bench, Calibration& result)
      : bench_(bench), result_(result), enough_(close_enough * result.tolerance) {}

  // One parameter, from where it stands. It goes back to what the description says where its
  // figure does not need another number, or is hardly nearer with it and still not explained.
  Result<void> fit(const ParameterRow& row, FittedParameter& fitted) {
    const Figure& figure = *bench_.speaks_of(row);
    const double start = row.get(result_.device);
    const Axis axis{std::min(row.low, start), std::max(row.high, start), start, row.logarithmic,
                    row.whole};
    DEMARC_TRY(const Optimum found, least_error(axis, enough_, [&](double value) {
                 return error_with(row, figure, value);
               }));
    DEMARC_TRY(const double described, error_with(row, figure, fitted.before));
    fitted.evaluations += found.evaluations + 1;
    const bool needed = found.error + enough_ < described;
    const bool explains = found.error <= result_.tolerance || 2 * found.error <= described;
    fitted.after = needed && explains ? found.at : fitted.before;
    fitted.undetermined.clear();
    if (fitted.after != fitted.before) {
      DEMARC_TRY(fitted.undetermined, same_figure_with(row, axis, found.at, fitted));
      if (!fitted.undetermined.empty()) fitted.after = fitted.before;
    }
    // A width that is left out stays so.
    if (fitted.after != start) row.set(result_.device, fitted.after);
    return {};
  }

 private:
  // Other numbers that give the same figure, in words: then another part of the device decides the
  // figure, and the number says nothing. Empty: the figure changes with the number.
  Result<std::string> same_figure_with(const ParameterRow& row, const Axis& axis, double found,
                                       FittedParameter& fitted) {
    const Figure& figure = *bench_.speaks_of(row);
    gpu::Device changed = result_.device;
    row.set(changed, found);
    DEMARC_TRY(const double value, bench_.simulated(figure, changed));
    ++fitted.evaluations;
    for (const double other : {neighbour_of(axis, found, false), neighbour_of(axis, found, true)}) {
      if (other == found) continue;  // the end of the axis
      row.set(changed, other);
      const auto beside = bench_.simulated(figure, changed);
      ++fitted.evaluations;
      if (!beside && beside.error().kind == ErrorKind::invalid_input) continue;  // no such device
      if (!beside) return tl::unexpected(beside.error());
      if (std::abs(std::log(*beside / value)) > enough_) continue;
      return fmt::format("'{}' is the same with {:.4g} and {:.4g}", figure.name,
                         std::min(found, other), std::max(found, other));
    }
    return std::string();
  }

  [[nodiscard]] Result<double> error_with(const ParameterRow& row, const Figure& figure,
                                          double value) const {
    gpu::Device changed = result_.device;
    row.set(changed, value);
    return bench_.error(figure, changed);
  }

  const FigureBench& bench_;
  Calibration& result_;
  double enough_;  // error
};

// "no figure 'dram_write' or 'add' was given"
std::string lacks(const ParameterRow& row) {
  std::string text = "no figure ";
  for (const std::string_view name : row.figures) {
    if (!name.empty()) append(text, "{}'{}'", name == row.figures.front() ? "" : " or ", name);
  }
  return text + " was given";
}

std::vector<std::string> fitted_to(const Calibration& result, const std::string& figure) {
  std::vector<std::string> names;
  for (const FittedParameter& parameter : result.fitted) {
    if (parameter.figure == figure) names.push_back(parameter.name);
  }
  return names;
}

// Whether the table has them, each once, and of a device with so many SMs.
Result<void> check_fit(const gpu::Device& start, const FigureSet& set, const FitOptions& options) {
  if (set.figures.empty()) return invalid_input("there is no figure to fit to");
  if (!(options.tolerance > 0 && options.tolerance < 1)) {
    return invalid_input("a tolerance of {} is not between 0 and 1", options.tolerance);
  }
  for (auto one = set.figures.begin(); one != set.figures.end(); ++one) {
    DEMARC_TRY(const FigureRow* row, find_figure(one->name));
    if (!(one->value > 0)) {
      return invalid_input("figure '{}': {} is not above 0", one->name, one->value);
    }
    DEMARC_CHECK(check_card_peak(*row, one->value, set.device.name));
    DEMARC_CHECK(check_peak(*row, one->value, start, PeakOf::description));
    const auto again = std::find_if(set.figures.begin(), one,
                                    [&](const Figure& other) { return other.name == one->name; });
    if (again != one) return invalid_input("figure '{}' is given twice", one->name);
  }
  if (set.device.sms != 0) DEMARC_CHECK(check_sms(start, set.device.name, set.device.sms));
  if (const auto spec = sim::memory::make_spec(start, options.figures.seed); !spec) {
    return missing_capability("{}; give a --description that can be simulated",
                              spec.error().message);
  }
  return {};
}

// What no figure speaks of on this device, and why.
std::string not_spoken_of(const FigureBench& bench, const gpu::Device& start,
                          const ParameterRow& row) {
  if (const std::string_view idle = row.idle(start); !idle.empty()) return std::string(idle);
  return bench.speaks_of(row) == nullptr ? lacks(row) : "";
}

Result<void> fit_all(const FigureBench& bench, Calibration& result, const Progress& progress) {
  std::vector<const ParameterRow*> rows;
  for (const ParameterRow& row : parameter_rows()) {
    auto reason = not_spoken_of(bench, result.start, row);
    if (reason.empty()) {
      rows.push_back(&row);
      const double before = row.get(result.start);
      result.fitted.push_back(
          {std::string(row.name), before, before, bench.speaks_of(row)->name, 0});
    } else {
      result.kept.push_back({std::string(row.name), std::move(reason)});
    }
  }
  DEMARC_TRY(double least, bench.error(result.device));
  Calibration best = result;
  std::size_t done = 0;
  for (int pass = 0; pass < fit_passes; ++pass) {
    const gpu::Device before = result.device;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      report_progress(progress,
                      static_cast<double>(done++) / static_cast<double>(fit_passes * rows.size()),
                      fmt::format("fitting {}", rows[i]->name));
      DEMARC_CHECK(Fit(bench, result).fit(*rows[i], result.fitted[i]));
    }
    if (result.device == before) break;
    DEMARC_TRY(const double now, bench.error(result.device));
    if (now >= least) continue;
    least = now;
    best = result;
  }
  // What was spent on passes that led elsewhere counts, and so does what they found of a parameter
  // that stays.
  for (std::size_t i = 0; i < rows.size(); ++i) {
    FittedParameter& one = best.fitted[i];
    one.evaluations = result.fitted[i].evaluations;
    if (one.after == one.before) one.undetermined = result.fitted[i].undetermined;
  }
  result = std::move(best);
  return {};
}

}  // namespace

Result<Calibration> calibrate(const gpu::Device& start, const FigureSet& figures,
                              const FitOptions& options, const Progress& progress) {
  DEMARC_CHECK(check_fit(start, figures, options));
  FigureBench bench(start, figures, options.figures);
  DEMARC_CHECK(bench.record(progress));
  Calibration result{start, start, figures, options.tolerance, {}, {}, {}};
  result.figures.figures = bench.figures();
  report_progress(progress, 0, "simulating all figures as described");
  DEMARC_TRY(const auto before, bench.simulated(start));
  DEMARC_CHECK(fit_all(bench, result, progress));
  DEMARC_TRY(const auto after, bench.simulated(result.device));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Figure& figure = bench.figures()[i];
    result.residuals.push_back({figure, before[i], after[i], fitted_to(result, figure.name)});
  }
  return result;
}

std::vector<std::string> unexplained(const Calibration& calibration) {
  std::vector<std::string> names;
  for (const Residual& residual : calibration.residuals) {
    if (std::abs(residual.error()) > calibration.tolerance) names.push_back(residual.figure.name);
  }
  return names;
}

}  // namespace demarc::study
