// The whole table of docs/measurements/fidelity.md: 15 victims beside 6 aggressors on the simulated
// cards, beside what was measured; three to four minutes per card on 16 cores. No parameter of a
// device was fitted to these cells.
//
// Aims: a mean error of 15 points, a rank correlation of 0.9, no cell off by more than 60 points.
// The limits are what was reached; `--aims` takes the aims instead. `--quick` takes nine victims,
// most of them bound by memory, and three aggressors. A device file behind the card's name is
// simulated in its place.
//
// `--forecast` simulates nothing: what half the memory costs by forecast, beside what colours cost
// the card, in two seconds. Aims: 20 points and a rank correlation of 0.8. Without a name the H200
// is left out: its colours cost instructions, which no forecast knows.
#include "fidelity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "demarc/base/files.hpp"
#include "demarc/study/sim_executor.hpp"
#include "paths.hpp"

namespace {

using namespace demarc::study;

constexpr CardFidelity aims{
    .device = "", .table = "", .mean_error = 15, .rank_correlation = 0.9, .worst_error = 60};

constexpr std::array<std::string_view, 9> quick_victims{
    "va", "nn", "sp", "cfd", "gaussian", "chase", "dram_read", "l2_read", "l2_write"};
constexpr std::array<std::string_view, 3> quick_aggressors{"va", "dram_write", "l2_write"};

bool is_in(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Victims and aggressors of the table, at the scale that stands for a card's.
demarc::Result<Plan> plan_of(const std::vector<MeasuredTime>& measured, bool quick) {
  Plan plan;
  DEMARC_TRY(plan.modes, parse_modes("mask"));
  const auto add = [](std::vector<Workload>& list, const std::string& name) {
    const Workload workload{name, name + "@card"};
    if (std::find(list.begin(), list.end(), workload) == list.end()) list.push_back(workload);
  };
  for (const MeasuredTime& time : measured) {
    if (time.mode != "mask") continue;
    if (!quick || is_in(quick_victims, time.victim)) add(plan.victims, time.victim);
    if (time.aggressor.empty()) continue;
    if (!quick || is_in(quick_aggressors, time.aggressor)) add(plan.aggressors, time.aggressor);
  }
  plan.rule.warm_up = 1;
  plan.rule.least = plan.rule.most = 1;
  plan.rounds = 1;
  return plan;
}

demarc::Result<bool> reached(const CardFidelity& card, const std::string& device,
                             const CardFidelity& limits, bool quick) {
  const auto path = demarc::test::source_dir() / "docs" / "measurements" / card.table;
  DEMARC_TRY(const std::string csv, demarc::read_file(path));
  DEMARC_TRY(const auto measured, parse_measured(csv, path.string()));
  DEMARC_TRY(const Plan plan, plan_of(measured, quick));
  SimExecutorOptions options;
  options.device = device;
  DEMARC_TRY(const auto executor, make_sim_executor(options));
  DEMARC_TRY(const StudyResult result, run_study(plan, *executor, {}));
  DEMARC_TRY(const Fidelity fidelity, compare(measured, result));
  fmt::print("{}\n{}", device, fidelity_text(fidelity));
  const double worst = fidelity.cells.front().error();
  fmt::print(
      "  mean error {:.1f} (limit {:.1f}, aim {:.1f}), rank correlation {:.2f} (limit {:.2f}, aim "
      "{:.2f}), worst {:.1f} (limit {:.1f}, aim {:.1f})\n",
      fidelity.mean_error, limits.mean_error, aims.mean_error, fidelity.rank_correlation,
      limits.rank_correlation, aims.rank_correlation, worst, limits.worst_error, aims.worst_error);
  return fidelity.mean_error <= limits.mean_error &&
         fidelity.rank_correlation >= limits.rank_correlation && worst <= limits.worst_error;
}

// All victims of the table, at the size that was measured.
demarc::Result<bool> forecast_reached(const CardFidelity& card, const std::string& device) {
  const auto path = demarc::test::source_dir() / "docs" / "measurements" / card.table;
  DEMARC_TRY(const std::string csv, demarc::read_file(path));
  DEMARC_TRY(const auto measured, parse_measured(csv, path.string()));
  Plan plan;
  for (const MeasuredTime& time : measured) {
    if (time.mode != "mask" || !time.aggressor.empty()) continue;
    plan.victims.push_back({time.victim, time.victim + "@large"});
  }
  SimExecutorOptions options;
  options.device = device;
  DEMARC_TRY(const auto executor, make_sim_executor(options));
  DEMARC_TRY(const Forecast forecast, demarc::study::forecast(plan, *executor));
  DEMARC_TRY(const ForecastFidelity fidelity, compare(measured, forecast));
  fmt::print("{}\n{}", device, fidelity_text(fidelity));
  if (card.forecast_error <= 0) return true;
  return fidelity.mean_error <= card.forecast_error &&
         fidelity.rank_correlation >= card.forecast_rank_correlation;
}

bool known(const std::string& device) {
  const auto cards = compared_cards();
  return std::any_of(cards.begin(), cards.end(),
                     [&](const CardFidelity& card) { return card.device == device; });
}

}  // namespace

int main(int count, char** words) {
  bool to_aims = false;
  bool quick = false;
  bool forecast = false;
  std::string device;
  std::string twin;
  for (const char* const given : std::span(words, static_cast<std::size_t>(count)).subspan(1)) {
    const std::string word = given;
    if (word == "--aims") {
      to_aims = true;
    } else if (word == "--quick") {
      quick = true;
    } else if (word == "--forecast") {
      forecast = true;
    } else if (known(word)) {
      device = word;
    } else if (!device.empty() && word.ends_with(".json")) {
      twin = word;
    } else {
      fmt::print(
          stderr,
          "usage: demarc_fidelity_bench [--aims|--quick|--forecast] [h100-sxm|h200 [TWIN.json]]\n");
      return EXIT_FAILURE;
    }
  }
  bool held_all = true;
  for (const CardFidelity& card : compared_cards()) {
    if (!device.empty() && device != card.device) continue;
    if (forecast && device.empty() && card.forecast_error <= 0) continue;
    const std::string simulated = twin.empty() ? std::string(card.device) : twin;
    const auto held = forecast ? forecast_reached(card, simulated)
                               : reached(card, simulated, to_aims ? aims : card, quick);
    if (!held) {
      fmt::print(stderr, "{}: {}\n", card.device, held.error().message);
      return EXIT_FAILURE;
    }
    held_all = held_all && *held;
  }
  return held_all ? EXIT_SUCCESS : EXIT_FAILURE;
}
