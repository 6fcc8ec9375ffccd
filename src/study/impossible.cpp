// Finds figures of a study that no card gives, and tables in which nothing happens.
#include <algorithm>
#include <cmath>

#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

constexpr double least_gain = 2;        // per cent; less may be the order of equal events
constexpr double printed_as_one = 0.5;  // per cent: 1.00x in a table

const Cell* idle_cell(const StudyResult& result, const Cell& beside) {
  const auto found = std::find_if(result.cells.begin(), result.cells.end(), [&](const Cell& cell) {
    return cell.mode == beside.mode && cell.victim == beside.victim && !cell.aggressor;
  });
  return found == result.cells.end() || found->times.count == 0 ? nullptr : &*found;
}

// The end of the interval that is nearest to no change. One run of a model repeats exactly.
double mildest_change(const StudyResult& result, const Cell& beside, const Cell& idle) {
  const Estimate change = variation_percent(beside.times, idle.times);
  const bool single = std::min(beside.times.count, idle.times.count) < 2;
  return single && !result.device.measured ? change.value : change.high;
}

void add_gains(const StudyResult& result, std::vector<std::string>& out) {
  const Plan& plan = result.plan;
  for (const Cell& beside : result.cells) {
    if (!beside.aggressor || beside.times.count == 0) continue;
    // On shared SMs a neighbour leaves a victim fewer blocks at a time, which may miss less.
    if (!plan.modes[beside.mode].traits().confines) continue;
    const Cell* const idle = idle_cell(result, beside);
    if (idle == nullptr || mildest_change(result, beside, *idle) > -least_gain) continue;
    out.push_back(fmt::format(
        "{}: next to {}, {} takes {:.3f}x of its time next to idle neighbours, and its runs differ "
        "by less than that; but a neighbour does not make a victim faster",
        plan.modes[beside.mode].name(), plan.aggressors[*beside.aggressor].name,
        plan.victims[beside.victim].name, beside.times.mean / idle->times.mean));
  }
}

void add_rates(const std::vector<WorkloadForecast>& rows, std::vector<std::string>& out) {
  for (const WorkloadForecast& row : rows) {
    if (!row.missing.empty()) continue;
    for (const double rate : {row.l2_hit_rate, row.half_l2_hit_rate}) {
      if (rate >= 0 && rate <= 1) continue;
      out.push_back(
          fmt::format("forecast of {}: a hit rate of {} is not between 0 and 1", row.name, rate));
    }
  }
}

}  // namespace

std::vector<std::string> impossible_figures(const StudyResult& result) {
  std::vector<std::string> out;
  add_gains(result, out);
  add_rates(result.forecast.victims, out);
  add_rates(result.forecast.aggressors, out);
  return out;
}

Result<void> check_possible(const StudyResult& result) {
  if (result.device.measured || result.impossible.empty()) return {};
  return check_failed("{} of the study's figures cannot be right; the first is: {}",
                      result.impossible.size(), result.impossible.front());
}

std::vector<std::string> empty_tables(const StudyResult& result) {
  std::vector<std::string> out;
  if (!result.interrupted.empty()) return out;  // other cells may show more
  for (const ModeSummary& mode : result.modes) {
    const Mode& of = result.plan.modes[mode.mode];
    // Its account says that simulated colours isolate by construction.
    if (mode.victims.empty() || (of.color && !result.device.measured)) continue;
    const bool none_slowed =
        std::all_of(mode.victims.begin(), mode.victims.end(), [](const Variation& row) {
          return std::abs(row.mean_percent.value) < printed_as_one &&
                 std::abs(row.run_percent.value) < printed_as_one &&
                 judged_by(row.tail).percent < printed_as_one && row.missing.empty();
        });
    if (!none_slowed) continue;
    out.push_back(fmt::format(
        "{}: every slowdown is 1.00x, so these neighbours use nothing that the victims use, or the "
        "workloads are too small to show it on this device",
        of.name()));
  }
  return out;
}

}  // namespace demarc::study
