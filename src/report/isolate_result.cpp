// Makes the first screen of an interference study's page: slowdown and overhead of every mode.
#include "isolate_result.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "isolate_tables.hpp"

namespace demarc::report {
namespace {

using study::ModeSummary;
using study::StudyResult;
using study::Variation;

const Variation& slowed_most(const ModeSummary& mode) {
  return *std::max_element(mode.victims.begin(), mode.victims.end(),
                           [](const Variation& a, const Variation& b) {
                             return a.mean_percent.value < b.mean_percent.value;
                           });
}

const Variation& largest_overhead(const ModeSummary& mode) {
  return *std::max_element(
      mode.victims.begin(), mode.victims.end(),
      [](const Variation& a, const Variation& b) { return a.overhead < b.overhead; });
}

std::string victim_name(const StudyResult& result, const Variation& row) {
  return result.plan.victims[row.victim].name;
}

KeyFigure card_of(const StudyResult& result, const ModeSummary& mode) {
  const Variation& row = slowed_most(mode);
  const Variation& dear = largest_overhead(mode);
  KeyFigure card{.name = "`" + mode_name(result, mode) + "`",
                 .value = study::slowdown_text(mode.mean.maximum),
                 .note = fmt::format("worst slowdown: `{}` next to `{}`", victim_name(result, row),
                                     result.plan.aggressors[row.worst_for_mean].name),
                 .tone = tone_of(mode.mean.maximum),
                 .meaning = meaning_of_mode(result.plan.modes[mode.mode]),
                 .second = ratio_cell(dear.overhead, Tone::plain).text,
                 .second_note = fmt::format("largest overhead: `{}`", victim_name(result, dear)),
                 .second_tone = tone_of_overhead(dear.overhead)};
  for (const study::NamedTail& tail : study::named_tails(mode.tail)) {
    card.note += fmt::format("; {}: {}", tail.name, study::slowdown_text(tail.percent.maximum));
  }
  return card;
}

const char* words_of_launches(study::Launches launches) {
  switch (launches) {
    case study::Launches::separate:
      return "";
    case study::Launches::graph:
      return "; the victim is replayed as a CUDA graph";
    case study::Launches::overlapped:
      return "; each launch of the victim begins while the one before still runs";
    case study::Launches::overlapped_graph:
      return "; the victim is replayed as a CUDA graph whose launches overlap";
    case study::Launches::fused:
      return "; the victim's launches are fused into one";
  }
  return "";
}

}  // namespace

std::string meaning_of_mode(const study::Mode& mode) {
  std::string text(mode.traits().help);
  if (mode.color) {
    text += "; memory in colours: each part has L2 slices and DRAM channels of its own";
  }
  text += words_of_launches(mode.launches);
  if (mode.common_domain) text += "; all parts share one memory synchronisation domain";
  return text;
}

void add_isolate_result(Page& page, const StudyResult& result) {
  page.prose(result.recommendation);
  for (const std::string& error : result.errors) {
    page.prose(fmt::format("Error, not counted: {}", error));
  }
  for (const std::string& figure : result.impossible) {
    page.prose(
        fmt::format("{}: {}", result.device.measured ? "In doubt" : "Cannot be right", figure));
  }
  if (result.cells.empty()) return;
  if (const std::string words = study::words_on_commands(result.plan); !words.empty()) {
    page.prose(words);
  }
  std::vector<KeyFigure> cards;
  const auto modes = modes_that_ran(result);
  cards.reserve(modes.size());
  for (const ModeSummary* mode : modes) cards.push_back(card_of(result, *mode));
  page.key_figures(cards);
  page.prose(fmt::format(
      "Slowdown: mean time of a victim's kernels next to a busy neighbour over that next to an "
      "idle "
      "one (1.00x: not slowed). Overhead: time next to an idle neighbour over the time of an ideal "
      "share of the GPU, which is {} times the time alone on the whole GPU (1.00x: nothing is "
      "lost). A victim is timed in one part while an aggressor runs over and over in the others.",
      result.plan.parts));
  for (const ModeSummary& mode : result.modes) {
    if (mode.unavailable.empty()) continue;
    page.prose(fmt::format("`{}` was not run: {}", mode_name(result, mode), mode.unavailable));
  }
  for (const std::string& remark : study::remarks_of(result)) page.prose("Note: " + remark);
}

}  // namespace demarc::report
