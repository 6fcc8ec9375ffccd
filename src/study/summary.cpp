#include <algorithm>

#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

const Cell* find_cell(const StudyResult& result, std::size_t mode, std::size_t victim,
                      std::optional<std::size_t> aggressor) {
  for (const Cell& cell : result.cells) {
    if (cell.mode == mode && cell.victim == victim && cell.aggressor == aggressor) return &cell;
  }
  return nullptr;
}

// The row of one victim, or nothing when one of its runs is missing or computed a wrong result.
std::optional<Variation> variation_of(const StudyResult& result, std::size_t mode,
                                      const Baseline& baseline) {
  const Cell* idle = find_cell(result, mode, baseline.victim, std::nullopt);
  if (idle == nullptr || idle->times.count == 0) return std::nullopt;
  Variation row;
  row.victim = baseline.victim;
  const double norm = static_cast<double>(result.plan.parts) * baseline.times.mean;
  row.normalized_idle = idle->times.mean / norm;
  row.normalized_worst = row.normalized_idle;
  for (std::size_t b = 0; b < result.plan.aggressors.size(); ++b) {
    const Cell* loaded = find_cell(result, mode, baseline.victim, b);
    if (loaded == nullptr || loaded->times.count == 0) return std::nullopt;
    const Estimate mean = variation_percent(loaded->times, idle->times);
    const Estimate p99 = p99_variation_percent(loaded->times, idle->times);
    if (b == 0 || mean.value > row.mean_percent.value) {
      row.mean_percent = mean;
      row.worst_for_mean = b;
    }
    if (b == 0 || p99.value > row.p99_percent.value) {
      row.p99_percent = p99;
      row.worst_for_p99 = b;
    }
    const Estimate run = variation_percent(loaded->runs, idle->runs);
    const Estimate run_p99 = p99_variation_percent(loaded->runs, idle->runs);
    if (b == 0 || run.value > row.run_percent.value) {
      row.run_percent = run;
      row.worst_for_run = b;
    }
    if (b == 0 || run_p99.value > row.run_p99_percent.value) row.run_p99_percent = run_p99;
    row.normalized_worst = std::max(row.normalized_worst, loaded->times.mean / norm);
  }
  return row;
}

struct MeanAndMaximum {
  double mean = 0;
  double maximum = 0;
};

template <class Member>
MeanAndMaximum over_victims(const std::vector<Variation>& rows, Member member) {
  MeanAndMaximum out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double value = (rows[i].*member).value;
    out.mean += value / static_cast<double>(rows.size());
    out.maximum = i == 0 ? value : std::max(out.maximum, value);
  }
  return out;
}

// "2.4 times" above a doubling, "37 %" below it.
std::string slowdown_words(double percent) {
  if (percent >= 100) return fmt::format("{:.1f} times", 1 + percent / 100);
  return fmt::format("by {:.0f} %", percent);
}

const Variation& worst_row(const ModeSummary& mode) {
  return *std::max_element(mode.victims.begin(), mode.victims.end(),
                           [](const Variation& a, const Variation& b) {
                             return a.mean_percent.value < b.mean_percent.value;
                           });
}

// The smallest whole per cent that no victim exceeds, at least 1.
int ceiling_percent(double maximum) {
  int bound = 1;
  while (bound < maximum) ++bound;
  return bound;
}

std::string holding_sentence(const StudyResult& result, const ModeSummary& mode) {
  return fmt::format(
      "{} holds {} {} under {} % (mean time; p99 under {} %)", result.plan.modes[mode.mode].name(),
      mode.victims.size() == 1 ? "the one victim" : "all",
      mode.victims.size() == 1 ? "measured" : fmt::format("{} victims", mode.victims.size()),
      ceiling_percent(mode.maximum_percent), ceiling_percent(mode.maximum_p99_percent));
}

std::string failing_sentence(const StudyResult& result, const ModeSummary& mode) {
  const Variation& row = worst_row(mode);
  return fmt::format("{} lets {} slow {} {}", result.plan.modes[mode.mode].name(),
                     result.plan.aggressors[row.worst_for_mean].name,
                     result.plan.victims[row.victim].name, slowdown_words(row.mean_percent.value));
}

// A tenth is where the best published colouring ends (V100: 8.7 % on average, 18.3 % at most).
constexpr double holds_below = 10;

// `judged` has the least maximum first. Moves a mode without colours before one with them, where
// both hold every victim and no aggressor presses on the memory. True if so.
bool prefer_undivided_memory(const StudyResult& result, std::vector<const ModeSummary*>& judged) {
  const Forecast& forecast = result.forecast;
  const auto colored = [&result](const ModeSummary* mode) {
    return result.plan.modes[mode->mode].color;
  };
  if (!colored(judged.front()) || forecast.aggressors.empty() ||
      std::any_of(forecast.aggressors.begin(), forecast.aggressors.end(), presses)) {
    return false;
  }
  const auto found = std::find_if(judged.begin(), judged.end(), [&](const ModeSummary* mode) {
    return !colored(mode) && mode->maximum_percent < holds_below;
  });
  if (found == judged.end()) return false;
  std::rotate(judged.begin(), found, found + 1);
  return true;
}

}  // namespace

void summarize(StudyResult& result) {
  for (ModeSummary& mode : result.modes) {
    mode.victims.clear();
    for (const Baseline& baseline : result.baselines) {
      if (auto row = variation_of(result, mode.mode, baseline)) mode.victims.push_back(*row);
    }
    const auto mean = over_victims(mode.victims, &Variation::mean_percent);
    const auto p99 = over_victims(mode.victims, &Variation::p99_percent);
    mode.average_percent = mean.mean;
    mode.maximum_percent = mean.maximum;
    mode.average_p99_percent = p99.mean;
    mode.maximum_p99_percent = p99.maximum;
    const auto run = over_victims(mode.victims, &Variation::run_percent);
    const auto run_p99 = over_victims(mode.victims, &Variation::run_p99_percent);
    mode.average_run_percent = run.mean;
    mode.maximum_run_percent = run.maximum;
    mode.average_run_p99_percent = run_p99.mean;
    mode.maximum_run_p99_percent = run_p99.maximum;
  }
}

std::string recommend(const StudyResult& result) {
  std::vector<const ModeSummary*> judged;
  for (const ModeSummary& mode : result.modes) {
    if (mode.victims.size() == result.plan.victims.size()) judged.push_back(&mode);
  }
  if (judged.empty()) return "No mode ran every victim with right results: nothing to recommend.";
  std::stable_sort(judged.begin(), judged.end(), [](const ModeSummary* a, const ModeSummary* b) {
    return a->maximum_percent < b->maximum_percent;
  });
  const bool better_whole = prefer_undivided_memory(result, judged);
  const ModeSummary& best = *judged.front();
  std::string text;
  if (best.maximum_percent < holds_below) {
    text = fmt::format("Use {}: {}.", result.plan.modes[best.mode].name(),
                       holding_sentence(result, best));
  } else {
    text = fmt::format("No mode holds every victim under {:.0f} %; the least bad is {}: {}.",
                       holds_below, result.plan.modes[best.mode].name(),
                       failing_sentence(result, best));
  }
  if (better_whole) {
    text += fmt::format(
        " Colours would buy nothing: by forecast no aggressor asks for {:.0f} % of the DRAM's or "
        "the L2's bandwidth, and undivided each victim has the whole L2.",
        100 * pressing_share);
  }
  for (std::size_t i = 1; i < judged.size(); ++i) {
    const ModeSummary& mode = *judged[i];
    text +=
        fmt::format(" {}.", mode.maximum_percent < holds_below ? holding_sentence(result, mode)
                                                               : failing_sentence(result, mode));
  }
  const std::string words = forecast_words(result.forecast);
  return words.empty() ? text : text + " " + words;
}

}  // namespace demarc::study
