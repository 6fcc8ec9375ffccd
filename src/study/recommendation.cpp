// Says in words which mode to use, from what was measured and what was forecast.
#include <algorithm>
#include <optional>

#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

const Variation& worst_row(const ModeSummary& mode) {
  return *std::max_element(mode.victims.begin(), mode.victims.end(),
                           [](const Variation& a, const Variation& b) {
                             return a.mean_percent.value < b.mean_percent.value;
                           });
}

// "0.66x on average and 0.96x at most (nn)": times next to idle neighbours over those of an ideal
// share of the GPU.
std::string overhead_text(const StudyResult& result, const ModeSummary& mode) {
  const auto& rows = mode.victims;
  const auto most = std::max_element(
      rows.begin(), rows.end(),
      [](const Variation& a, const Variation& b) { return a.overhead < b.overhead; });
  if (rows.size() == 1) return fmt::format("{:.2f}x", most->overhead);
  double sum = 0;
  for (const Variation& row : rows) sum += row.overhead;
  return fmt::format("{:.2f}x on average and {:.2f}x at most ({})",
                     sum / static_cast<double>(rows.size()), most->overhead,
                     result.plan.victims[most->victim].name);
}

// "mask: worst slowdown 1.37x (va next to mm; worst of 40 runs 1.38x), overhead 0.66x ..."
std::string sentence_of(const StudyResult& result, const ModeSummary& mode) {
  const Variation& row = worst_row(mode);
  std::string tails;
  for (const NamedTail& tail : named_tails(mode.tail)) {
    tails += fmt::format("; {} {}", tail.name, slowdown_text(tail.percent.maximum));
  }
  return fmt::format(
      "{}: worst slowdown {} ({} next to {}{}), overhead {}.", result.plan.modes[mode.mode].name(),
      slowdown_text(mode.mean.maximum), result.plan.victims[row.victim].name,
      result.plan.aggressors[row.worst_for_mean].name, tails, overhead_text(result, mode));
}

// Whether the mode isolates by keeping its neighbours from working.
bool restrains(const StudyResult& result, const ModeSummary& mode) {
  const partition::ModeTraits& traits = result.plan.modes[mode.mode].traits();
  return traits.throttles || traits.slices;
}

// `judged` has the best first. Moves a mode that neither colours nor restrains before one with
// colours, where both hold every victim and no aggressor presses on the memory. True if so.
bool prefer_undivided_memory(const StudyResult& result, std::vector<const ModeSummary*>& judged) {
  const Forecast& forecast = result.forecast;
  const auto colored = [&result](const ModeSummary* mode) {
    return result.plan.modes[mode->mode].divides_memory();
  };
  if (!colored(judged.front()) || forecast.aggressors.empty() ||
      std::any_of(forecast.aggressors.begin(), forecast.aggressors.end(), presses)) {
    return false;
  }
  const auto found = std::find_if(judged.begin(), judged.end(), [&](const ModeSummary* mode) {
    return !colored(mode) && !restrains(result, *mode) && mode->mean.maximum < holds_below;
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
  bool better_whole = false;              // a mode with colours isolates better, but gains nothing
};

Judged judge(const StudyResult& result) {
  Judged judged;
  auto& modes = judged.modes;
  for (const ModeSummary& mode : result.modes) {
    // The simulated page walks of windows are far from those of a card
    // (docs/measurements/windows.md).
    if (result.plan.modes[mode.mode].windows && !result.device.measured) continue;
    if (is_complete(result, mode)) modes.push_back(&mode);
  }
  // A mode that starves the neighbours comes after those that hold the victims without it.
  const auto key = [&result](const ModeSummary* mode) {
    const bool holds = mode->mean.maximum < holds_below;
    return std::pair(holds ? (restrains(result, *mode) ? 1 : 0) : 2, mode->mean.maximum);
  };
  std::stable_sort(modes.begin(), modes.end(),
                   [&key](const ModeSummary* a, const ModeSummary* b) { return key(a) < key(b); });
  judged.better_whole = !modes.empty() && prefer_undivided_memory(result, modes);
  return judged;
}

// The neighbours' work in one mode over that in another: the average over all pairs of the runs per
// second. Nothing if it is not known for any pair, as for commands.
std::optional<double> work_ratio(const StudyResult& result, std::size_t mode, std::size_t other) {
  double sum = 0;
  std::size_t pairs = 0;
  for (const Cell& cell : result.cells) {
    if (cell.mode != mode || !cell.aggressor || cell.samples_ns.empty() ||
        is_command(result.plan.aggressors[*cell.aggressor])) {
      continue;
    }
    for (const Cell& against : result.cells) {
      if (against.mode != other || against.victim != cell.victim ||
          against.aggressor != cell.aggressor || against.aggressor_rate <= 0) {
        continue;
      }
      sum += cell.aggressor_rate / against.aggressor_rate;
      ++pairs;
    }
  }
  if (pairs == 0) return std::nullopt;
  return sum / static_cast<double>(pairs);
}

// What a mode that restrains the neighbours takes from them, as against another mode, and, if that
// one has colours, whether these are worth their overhead. Empty if the work is not known.
std::string restraint_words(const StudyResult& result, const ModeSummary& restrained,
                            const ModeSummary& other) {
  const auto work = work_ratio(result, restrained.mode, other.mode);
  if (!work) return "";
  const std::string restraint = result.plan.modes[restrained.mode].name();
  const std::string color = result.plan.modes[other.mode].name();
  const std::string taken =
      fmt::format(" Under {} the neighbours do {:.2f}x of the work that they do under {}",
                  restraint, *work, color);
  if (!result.plan.modes[other.mode].divides_memory()) return taken + ".";
  const bool restraint_holds = restrained.mean.maximum < holds_below;
  const bool color_holds = other.mean.maximum < holds_below;
  const std::string limit = slowdown_text(holds_below);
  std::string verdict = fmt::format("and neither keeps slowdowns below {}", limit);
  if (restraint_holds && color_holds) {
    verdict = *work < 1 ? "so colours are worth their overhead only if the neighbours need more"
                        : "so colours are not worth their overhead";
  } else if (restraint_holds) {
    verdict = fmt::format("and only {} keeps slowdowns below {}", restraint, limit);
  } else if (color_holds) {
    verdict = fmt::format(
        "and only {} keeps slowdowns below {}, so colours are worth their overhead", color, limit);
  }
  return fmt::format("{}, {}.", taken, verdict);
}

// One sentence for each mode that restrains, against the best that has colours, or else against the
// best that does not restrain.
std::string restraint_words(const StudyResult& result,
                            const std::vector<const ModeSummary*>& judged) {
  auto other = std::find_if(judged.begin(), judged.end(), [&](const ModeSummary* mode) {
    return result.plan.modes[mode->mode].divides_memory();
  });
  if (other == judged.end()) {
    other = std::find_if(judged.begin(), judged.end(),
                         [&](const ModeSummary* mode) { return !restrains(result, *mode); });
  }
  std::string out;
  if (other == judged.end()) return out;
  for (const ModeSummary* mode : judged) {
    if (restrains(result, *mode)) out += restraint_words(result, *mode, **other);
  }
  return out;
}

}  // namespace

const ModeSummary* recommended_mode(const StudyResult& result) {
  const Judged judged = judge(result);
  return judged.modes.empty() ? nullptr : judged.modes.front();
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
  text += best.mean.maximum < holds_below
              ? "Use "
              : fmt::format("No mode keeps every slowdown below {}; the best is ",
                            slowdown_text(holds_below));
  text += sentence_of(result, best);
  if (better_whole) {
    text += fmt::format(
        " Colours would gain nothing: by forecast no aggressor asks for {:.0f} % of the DRAM's or "
        "the L2's bandwidth, and without colours each victim has the whole L2.",
        100 * pressing_share);
  }
  for (std::size_t i = 1; i < judged.size(); ++i) text += " " + sentence_of(result, *judged[i]);
  text += restraint_words(result, judged);
  if (!result.doubt.empty()) text += fmt::format(" {}.", result.doubt);
  const std::string words = forecast_words(result.forecast);
  return words.empty() ? text : text + " " + words;
}

}  // namespace demarc::study
