// Measures all figures of a card or of a simulated device.
#include <mutex>

#include "calibrate/figure_rows.hpp"
#include "calibrate/solo_simulation.hpp"
#include "demarc/base/parallel.hpp"
#include "demarc/sim/memory/spec.hpp"
#include "visit.hpp"

namespace demarc::study {
namespace {

tl::unexpected<Error> not_measured(const FigureRow& row, const Error& error) {
  return invalid_input("figure '{}' cannot be measured: {}", row.name, error.message);
}

// Half of the card's SMs by what the driver can do.
Result<std::unique_ptr<Stage>> half_of(Executor& executor) {
  Mode mode;
  mode.division = partition::Mode::mask;
  auto stage = executor.divide(mode, 2);
  if (stage || stage.error().kind != ErrorKind::missing_capability) return stage;
  mode.division = partition::Mode::green;
  auto other = executor.divide(mode, 2);
  if (other) return other;
  return missing_capability("{}; {}", stage.error().message, other.error().message);
}

Result<Figure> measure(const FigureRow& row, const gpu::Device& description, Lane& lane,
                       const StoppingRule& rule) {
  Figure figure{std::string(row.name), 0, 0, row.sizes(description)};
  const Workload workload = workload_of(row, figure.parameters);
  DEMARC_CHECK(solo_outputs(lane, workload));
  std::vector<double> samples;
  std::vector<double> runs;
  DEMARC_CHECK(warm_up(lane, rule));
  DEMARC_CHECK(take_samples(lane, rule, samples, runs));
  const Distribution times = describe(samples);
  if (!(times.mean > 0)) return check_failed("its runs are too short for the card's clock");
  figure.value = figure_of(row, figure.parameters, description, times.mean);
  if (samples.size() > 1) figure.spread = relative_precision(times);
  return figure;
}

}  // namespace

Result<FigureSet> measure_figures(const gpu::Device& description, Executor& executor,
                                  const FigureOptions& options, const Progress& progress) {
  FigureSet set;
  set.device = executor.context();
  DEMARC_CHECK(check_sms(description, set.device.name, set.device.sms));
  const auto rows = figure_rows();
  set.figures.resize(rows.size());
  std::size_t done = 0;
  for (const SmShare share : {SmShare::whole, SmShare::half}) {
    std::unique_ptr<Stage> stage;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const FigureRow& row = rows[i];
      if (row.share != share) continue;
      report_progress(progress, static_cast<double>(done++) / static_cast<double>(rows.size()),
                      row.name);
      if (!stage) {
        auto made = share == SmShare::whole ? executor.whole() : half_of(executor);
        if (!made) return not_measured(row, made.error());
        stage = std::move(*made);
        if (share == SmShare::half) {
          set.device.notes.push_back(fmt::format("halves: {}", stage->account()));
        }
      }
      auto figure = measure(row, description, stage->lane(0), options.rule);
      if (!figure) return not_measured(row, figure.error());
      DEMARC_CHECK(check_card_peak(row, figure->value, set.device.name));
      set.figures[i] = std::move(*figure);
    }
    if (stage) DEMARC_CHECK(finish_lanes(*stage));
  }
  return set;
}

Result<FigureSet> simulate_figures(const gpu::Device& target, const gpu::Device& description,
                                   const FigureOptions& options, const Progress& progress) {
  DEMARC_TRY(const auto spec, sim::memory::make_spec(target, options.seed));
  FigureSet set;
  set.device.name = target.name + " (simulated)";
  set.device.sms = spec.sms();
  DEMARC_CHECK(check_sms(description, set.device.name, set.device.sms));
  set.device.measured = false;
  const auto rows = figure_rows();
  SoloSimulation simulation(description, options.seed);
  for (const FigureRow& row : rows) {
    report_progress(progress, 0, fmt::format("emulating {}", row.name));
    set.figures.push_back({std::string(row.name), 0, 0, row.sizes(description)});
    DEMARC_CHECK(simulation.record(row, set.figures.back().parameters));
  }
  std::vector<Result<double>> values(rows.size());
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(rows.size(), options.threads, [&](std::size_t i) {
    values[i] = simulation.value(rows[i], set.figures[i].parameters, target);
    const std::lock_guard lock(mutex);
    report_progress(progress, static_cast<double>(++done) / static_cast<double>(rows.size()),
                    rows[i].name);
  });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    DEMARC_TRY(set.figures[i].value, values[i]);
  }
  return simulated_below_peaks(std::move(set), target);
}

}  // namespace demarc::study
