// Makes the first screen of an interference study's page: promise and price of every mode.
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

const Variation& dearest(const ModeSummary& mode) {
  return *std::max_element(mode.victims.begin(), mode.victims.end(),
                           [](const Variation& a, const Variation& b) {
                             return a.normalized_worst < b.normalized_worst;
                           });
}

std::string victim_name(const StudyResult& result, const Variation& row) {
  return result.plan.victims[row.victim].name;
}

std::string price_sentence(const StudyResult& result, const ModeSummary& mode) {
  const Variation& row = dearest(mode);
  return fmt::format(
      "The price: at worst `{}` takes {} times the time that it takes alone on the whole GPU.",
      victim_name(result, row), three_digits(price_of(result, row)));
}

std::string advice(const StudyResult& result) {
  const ModeSummary* best = study::recommended_mode(result);
  if (best == nullptr) return result.recommendation;
  const Variation& row = slowed_most(*best);
  const std::string slowed = three_digits(slowdown_of(best->mean.maximum));
  std::string text;
  if (best->mean.maximum < study::holds_below) {
    text = fmt::format(
        "Use `{}`: beside its worst neighbour no victim takes more than {} times its undisturbed "
        "time.",
        mode_name(result, *best), slowed);
  } else {
    text = fmt::format(
        "No mode holds every victim below {} times its undisturbed time. The least bad is `{}`: "
        "`{}` lets `{}` take {} times as long.",
        three_digits(slowdown_of(study::holds_below)), mode_name(result, *best),
        result.plan.aggressors[row.worst_for_mean].name, victim_name(result, row), slowed);
  }
  text += " " + price_sentence(result, *best);
  if (study::colors_buy_nothing(result)) {
    text += fmt::format(
        " Colours would buy nothing: by forecast no aggressor asks for {:.0f} % of the bandwidth "
        "of the DRAM or of the L2, and without colours each victim has the whole L2.",
        100 * study::pressing_share);
  }
  return text;
}

KeyFigure card_of(const StudyResult& result, const ModeSummary& mode) {
  const Variation& row = slowed_most(mode);
  const Variation& dear = dearest(mode);
  KeyFigure card{.name = "`" + mode_name(result, mode) + "`",
                 .value = times_text(slowdown_of(mode.mean.maximum)),
                 .note = fmt::format("worst slowdown: `{}` beside `{}`", victim_name(result, row),
                                     result.plan.aggressors[row.worst_for_mean].name),
                 .tone = tone_of(mode.mean.maximum),
                 .meaning = meaning_of_mode(result.plan.modes[mode.mode]),
                 .price = times_text(price_of(result, dear)),
                 .price_note = fmt::format("price: `{}`", victim_name(result, dear)),
                 .price_tone = tone_of_price(result, price_of(result, dear))};
  for (const study::NamedTail& tail : study::named_tails(mode.tail)) {
    card.note +=
        fmt::format("; {}: {}", tail.name, three_digits(slowdown_of(tail.percent.maximum)));
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
  page.prose(result.cells.empty() ? result.recommendation : advice(result));
  for (const std::string& error : result.errors) {
    page.prose(fmt::format("Error, not counted: {}", error));
  }
  for (const std::string& figure : result.impossible) {
    page.prose(
        fmt::format("{}: {}", result.device.measured ? "In doubt" : "Cannot be right", figure));
  }
  if (result.cells.empty()) return;
  page.prose(fmt::format(
      "Slowdown: a kernel's mean time beside a busy neighbour over its time beside an idle one; "
      "1.00 is undisturbed. Price: its worst time in its part over its time alone on the whole "
      "GPU; {} is a fair share of {} parts.",
      result.plan.parts, result.plan.parts));
  std::vector<KeyFigure> cards;
  auto modes = modes_that_ran(result);
  if (const auto best = std::find(modes.begin(), modes.end(), study::recommended_mode(result));
      best != modes.end()) {
    std::rotate(modes.begin(), best, best + 1);
  }
  cards.reserve(modes.size());
  for (const ModeSummary* mode : modes) cards.push_back(card_of(result, *mode));
  page.key_figures(cards);
  page.prose(
      "A victim is timed in one part while an aggressor runs over and over in the others. An SM is "
      "a core of the GPU, a TPC a pair of them.");
  for (const ModeSummary& mode : result.modes) {
    if (mode.unavailable.empty()) continue;
    page.prose(fmt::format("`{}` was not run: {}", mode_name(result, mode), mode.unavailable));
  }
  for (const std::string& remark : study::remarks_of(result)) page.prose("Note: " + remark);
}

}  // namespace demarc::report
