// Says in words which mode to use, from what was measured and what was forecast.
#include <algorithm>
#include <cmath>

#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

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

// The smallest whole per cent that every victim stays under, at least 1.
int ceiling_percent(double maximum) {
  return std::max(1, static_cast<int>(std::floor(maximum)) + 1);
}

std::string holding_sentence(const StudyResult& result, const ModeSummary& mode) {
  std::string tails;
  for (const NamedTail& tail : named_tails(mode.tail)) {
    tails += fmt::format("; {} under {} %", tail.name, ceiling_percent(tail.percent.maximum));
  }
  return fmt::format(
      "{} holds {} {} under {} % (mean time{})", result.plan.modes[mode.mode].name(),
      mode.victims.size() == 1 ? "the one victim" : "all",
      mode.victims.size() == 1 ? "measured" : fmt::format("{} victims", mode.victims.size()),
      ceiling_percent(mode.mean.maximum), tails);
}

std::string failing_sentence(const StudyResult& result, const ModeSummary& mode) {
  const Variation& row = worst_row(mode);
  return fmt::format("{} lets {} slow {} {}", result.plan.modes[mode.mode].name(),
                     result.plan.aggressors[row.worst_for_mean].name,
                     result.plan.victims[row.victim].name, slowdown_words(row.mean_percent.value));
}

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
    return !colored(mode) && mode->mean.maximum < holds_below;
  });
  if (found == judged.end()) return false;
  std::rotate(judged.begin(), found, found + 1);
  return true;
}

bool is_complete(const StudyResult& result, const ModeSummary& mode) {
  return mode.failure.empty() && mode.victims.size() == result.plan.victims.size() &&
         std::all_of(mode.victims.begin(), mode.victims.end(),
                     [](const Variation& row) { return row.missing.empty(); });
}

struct Judged {
  std::vector<const ModeSummary*> modes;  // those that ran all of their cells, the best first
  bool better_whole = false;              // see colors_buy_nothing()
};

Judged judge(const StudyResult& result) {
  Judged judged;
  auto& modes = judged.modes;
  for (const ModeSummary& mode : result.modes) {
    if (is_complete(result, mode)) modes.push_back(&mode);
  }
  std::stable_sort(modes.begin(), modes.end(), [](const ModeSummary* a, const ModeSummary* b) {
    return a->mean.maximum < b->mean.maximum;
  });
  judged.better_whole = !modes.empty() && prefer_undivided_memory(result, modes);
  return judged;
}

}  // namespace

const ModeSummary* recommended_mode(const StudyResult& result) {
  const Judged judged = judge(result);
  return judged.modes.empty() ? nullptr : judged.modes.front();
}

bool colors_buy_nothing(const StudyResult& result) {
  return judge(result).better_whole;
}

std::string recommend(const StudyResult& result) {
  const auto [judged, better_whole] = judge(result);
  if (judged.empty() && !result.interrupted.empty())
    return "No mode ran all of its cells before the study was ended, so there is nothing to "
           "recommend.";
  if (judged.empty())
    return "No mode ran every victim with correct results, so there is nothing to recommend.";
  const ModeSummary& best = *judged.front();
  std::string text =
      result.interrupted.empty() ? "" : "Of the modes that were measured before the study ended: ";
  if (best.mean.maximum < holds_below) {
    text += fmt::format("Use {}: {}.", result.plan.modes[best.mode].name(),
                        holding_sentence(result, best));
  } else {
    text += fmt::format("No mode keeps every victim under {:.0f} %; the best of them is {}: {}.",
                        holds_below, result.plan.modes[best.mode].name(),
                        failing_sentence(result, best));
  }
  if (better_whole) {
    text += fmt::format(
        " Colours would gain nothing: by forecast no aggressor asks for {:.0f} % of the DRAM's or "
        "the L2's bandwidth, and without colours each victim has the whole L2.",
        100 * pressing_share);
  }
  for (std::size_t i = 1; i < judged.size(); ++i) {
    const ModeSummary& mode = *judged[i];
    text += fmt::format(" {}.", mode.mean.maximum < holds_below ? holding_sentence(result, mode)
                                                                : failing_sentence(result, mode));
  }
  const std::string words = forecast_words(result.forecast);
  return words.empty() ? text : text + " " + words;
}

}  // namespace demarc::study
