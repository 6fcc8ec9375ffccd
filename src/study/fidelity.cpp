// Compares simulated cells with measured ones: errors and rank correlation.
#include "fidelity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>

#include "demarc/base/split.hpp"

namespace demarc::study {
namespace {

constexpr std::array<CardFidelity, 2> known_cards{
    {{"h100-sxm", "isolate-h100-halves.csv", 9, 0.92, 37, 18, 0.80},
     {"h200", "isolate-h200-mask.csv", 8, 0.90, 32, 0, 0}}};

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean_of(a);
  const double mean_b = mean_of(b);
  double both = 0;
  double of_a = 0;
  double of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    of_a += (a[i] - mean_a) * (a[i] - mean_a);
    of_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return of_a == 0 || of_b == 0 ? 0 : both / std::sqrt(of_a * of_b);
}

// Times of the table by name.
class Table {
 public:
  explicit Table(const std::vector<MeasuredTime>& times) : times_(times) {}
  [[nodiscard]] Result<double> at(std::string_view mode, std::string_view victim,
                                  std::string_view aggressor) const {
    for (const MeasuredTime& time : times_) {
      if (time.mode == mode && time.victim == victim && time.aggressor == aggressor) return time.us;
    }
    return invalid_input("the measured table has no {} next to {} under {}", victim,
                         aggressor.empty() ? "idle neighbours" : aggressor, mode);
  }

 private:
  const std::vector<MeasuredTime>& times_;
};

double slowdown(double beside, double idle) {
  return 100 * (beside / idle - 1);
}

}  // namespace

double ComparedCell::error() const {
  return std::abs(simulated - measured);
}

std::span<const CardFidelity> compared_cards() {
  return known_cards;
}

std::string expected_error(std::string_view device) {
  for (const CardFidelity& card : known_cards) {
    if (card.device != device) continue;
    const std::string of_forecast =
        card.forecast_error > 0
            ? fmt::format(
                  "; forecasts of the slowdown by half the memory are off by {:.2f}x on average",
                  card.forecast_error / 100)
            : "";
    return fmt::format(
        "error to expect: under mask, slowdowns of 15 workloads at the scale `card` are off by "
        "{:.2f}x on average and by {:.2f}x at worst{} (docs/measurements/fidelity.md)",
        card.mean_error / 100, card.worst_error / 100, of_forecast);
  }
  return "error to expect: not known, because slowdowns of this description were not compared with "
         "those of a card";
}

Result<std::vector<MeasuredTime>> parse_measured(std::string_view csv, std::string_view source) {
  std::vector<MeasuredTime> times;
  for (std::size_t number = 1; !csv.empty(); ++number) {
    const auto end = std::min(csv.find('\n'), csv.size());
    const auto fields = split_at(csv.substr(0, end), ',');
    csv.remove_prefix(std::min(end + 1, csv.size()));
    if (number == 1) {
      if (fields.size() < 5 || fields[0] != "mode" || fields[4] != "kernels_mean_us") {
        return invalid_input("{}:1: this is not a table of measured cells", source);
      }
      continue;
    }
    MeasuredTime time;
    const auto* const last = fields.size() < 5 ? nullptr : fields[4].data() + fields[4].size();
    if (last == nullptr || std::from_chars(fields[4].data(), last, time.us).ptr != last ||
        !(time.us > 0)) {
      return invalid_input("{}:{}: expected a line mode,victim,aggressor,runs,microseconds", source,
                           number);
    }
    time.mode = fields[0];
    time.victim = fields[1];
    if (fields[2] != "-") time.aggressor = fields[2];
    times.push_back(std::move(time));
  }
  return times;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double place = static_cast<double>(first + 1 + end) / 2;
    for (; first < end; ++first) ranks[order[first]] = place;
  }
  return ranks;
}

Result<Fidelity> compare(const std::vector<MeasuredTime>& measured, const StudyResult& simulated) {
  const Table table(measured);
  const Plan& plan = simulated.plan;
  const std::string mode = plan.modes.at(0).name();
  Fidelity fidelity;
  double idle = 0;
  for (const Cell& cell : simulated.cells) {
    if (cell.mode != 0) continue;
    const std::string& victim = plan.victims[cell.victim].name;
    if (!cell.error.empty()) return check_failed("{}: {}", victim, cell.error);
    if (!cell.not_run.empty()) return missing_capability("{}: {}", victim, cell.not_run);
    DEMARC_TRY(const double alone, table.at(mode, victim, ""));
    if (!cell.aggressor) {  // the first of its victim
      idle = cell.times.mean;
      DEMARC_TRY(const double whole, table.at("none", victim, ""));
      fidelity.costs.push_back(
          {victim, alone / whole, idle / simulated.baselines.at(cell.victim).times.mean});
      continue;
    }
    const std::string& aggressor = plan.aggressors[*cell.aggressor].name;
    DEMARC_TRY(const double beside, table.at(mode, victim, aggressor));
    fidelity.cells.push_back(
        {victim, aggressor, slowdown(beside, alone), slowdown(cell.times.mean, idle)});
  }
  if (fidelity.cells.empty()) return invalid_input("the study has no cell to compare");
  std::sort(fidelity.cells.begin(), fidelity.cells.end(),
            [](const ComparedCell& a, const ComparedCell& b) { return a.error() > b.error(); });
  std::vector<double> errors;
  std::vector<double> of_card;
  std::vector<double> of_simulation;
  for (const ComparedCell& cell : fidelity.cells) {
    errors.push_back(cell.error());
    of_card.push_back(cell.measured);
    of_simulation.push_back(cell.simulated);
  }
  fidelity.mean_error = mean_of(errors);
  fidelity.median_error = median_of(errors);
  fidelity.rank_correlation = correlation(ranks_of(of_card), ranks_of(of_simulation));
  return fidelity;
}

std::string fidelity_text(const Fidelity& fidelity) {
  std::string text =
      "time in half of the card over that in the whole card, idle neighbours: simulated, "
      "measured\n";
  for (const ComparedCost& cost : fidelity.costs) {
    text += fmt::format("  {:12} {:6.2f} {:6.2f}\n", cost.victim, cost.simulated, cost.measured);
  }
  text += "slowdown: simulated, measured, error\n";
  for (const ComparedCell& cell : fidelity.cells) {
    text += fmt::format("  {:12} next to {:12} {:>7} {:>7} {:6.2f}x\n", cell.victim, cell.aggressor,
                        slowdown_text(cell.simulated), slowdown_text(cell.measured),
                        cell.error() / 100);
  }
  text += fmt::format(
      "{} cells: mean error {:.3f}x, median {:.3f}x, worst {:.3f}x, rank correlation {:.2f}\n",
      fidelity.cells.size(), fidelity.mean_error / 100, fidelity.median_error / 100,
      fidelity.cells.front().error() / 100, fidelity.rank_correlation);
  return text;
}

Result<ForecastFidelity> compare(const std::vector<MeasuredTime>& measured,
                                 const Forecast& forecast) {
  if (!forecast.missing.empty()) return missing_capability("{}", forecast.missing);
  const Table table(measured);
  ForecastFidelity fidelity;
  std::vector<double> errors;
  std::vector<double> of_card;
  std::vector<double> of_forecast;
  for (const WorkloadForecast& victim : forecast.victims) {
    if (!victim.missing.empty()) {
      fidelity.missing.push_back(victim.name);
      continue;
    }
    DEMARC_TRY(const double undivided, table.at("mask", victim.name, ""));
    DEMARC_TRY(const double divided, table.at("mask+color", victim.name, ""));
    fidelity.costs.push_back({victim.name, divided / undivided, victim.half_memory_slowdown});
    of_card.push_back(fidelity.costs.back().measured);
    of_forecast.push_back(fidelity.costs.back().simulated);
    errors.push_back(100 * std::abs(of_card.back() - of_forecast.back()));
  }
  if (errors.empty()) return invalid_input("the forecast has no victim to compare");
  fidelity.mean_error = mean_of(errors);
  fidelity.rank_correlation = correlation(ranks_of(of_card), ranks_of(of_forecast));
  return fidelity;
}

std::string fidelity_text(const ForecastFidelity& fidelity) {
  std::string text =
      "time with half the memory over that with all of it, on half of the SMs: forecast, "
      "measured\n";
  for (const ComparedCost& cost : fidelity.costs) {
    text += fmt::format("  {:12} {:6.2f} {:6.2f}\n", cost.victim, cost.simulated, cost.measured);
  }
  for (const std::string& name : fidelity.missing) text += fmt::format("  {:12} none\n", name);
  text += fmt::format("{} workloads: mean error {:.3f}x, rank correlation {:.2f}\n",
                      fidelity.costs.size(), fidelity.mean_error / 100, fidelity.rank_correlation);
  return text;
}

}  // namespace demarc::study
