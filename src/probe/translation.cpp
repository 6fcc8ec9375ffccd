// The whole probe of translation: chooses places and sizes, and collects what is found.
#include "demarc/probe/translation.hpp"

#include <array>
#include <chrono>

#include "progress_part.hpp"
#include "translation_words.hpp"

namespace demarc::probe {
namespace {

constexpr std::uint64_t kibibyte = 1024;
constexpr std::uint64_t mebibyte = kibibyte * 1024;

// What is asked of the driver, in order. The first of a place is measured in full; where it cannot
// be mapped, no others of the place are asked for. Pages of the probe are at most 2 MiB apart:
// where larger pieces are translated as larger pages, the reach in bytes is greater.
constexpr std::array<Mapping, 8> all_mappings = {{
    {MemoryPlace::local, 2 * mebibyte, 2 * mebibyte},
    {MemoryPlace::local, 64 * kibibyte, 64 * kibibyte},
    {MemoryPlace::local, 512 * mebibyte, 2 * mebibyte},
    {MemoryPlace::peer, 2 * mebibyte, 2 * mebibyte},
    {MemoryPlace::peer, 64 * kibibyte, 64 * kibibyte},
    {MemoryPlace::peer, 512 * mebibyte, 2 * mebibyte},
    {MemoryPlace::host, 0, 2 * mebibyte},
    {MemoryPlace::host, 0, 64 * kibibyte},
}};

// So many lines stay in the L2 whatever part of it a card keeps copies in.
constexpr std::uint64_t share_of_l2 = 4;

struct Stage {
  TimedTranslation& card;
  const TranslationOptions& options;
  Random& random;
  Progress progress;
  double own_hit_cycles;  // cycles of the card's own memory; 0: not measured
  bool in_full;
};

Result<void> measure_place(const Stage& stage, TimedPages& memory, PlaceFinding& finding) {
  const TranslationFacts& facts = stage.card.facts();
  LevelOptions levels = stage.options.levels;
  levels.max_lines = facts.l2_bytes / line_bytes / share_of_l2;
  levels.entries = stage.in_full && finding.mapping.place == MemoryPlace::local;
  finding.bytes = memory.pages() * memory.page_bytes();
  DEMARC_TRY(finding.levels,
             find_tlb_levels(memory, levels, stage.random, part_of(stage.progress, 0, 0.7)));
  if (!stage.in_full) return {};
  DEMARC_TRY(finding.walks, find_walk_rate(memory, facts.sms, levels.max_lines,
                                           part_of(stage.progress, 0.7, 0.8)));
  const double own_hit_cycles = finding.mapping.place == MemoryPlace::local
                                    ? finding.levels.steps.base_cycles
                                    : stage.own_hit_cycles;
  DEMARC_TRY(finding.caching, find_caching(memory, own_hit_cycles, stage.random));
  DEMARC_TRY(finding.rates, measure_rates(memory, facts.sms, part_of(stage.progress, 0.8, 1)));
  return {};
}

// An error where the card failed; what cannot be mapped is said in the finding.
Result<void> map_and_measure(const Stage& stage, PlaceFinding& finding) {
  auto memory = stage.card.map(finding.mapping);
  if (memory) return measure_place(stage, **memory, finding);
  if (memory.error().kind == ErrorKind::check_failed) return tl::unexpected(memory.error());
  finding.not_measured = memory.error().message;
  return {};
}

}  // namespace

std::string_view name_of(MemoryPlace place) {
  constexpr std::array<std::string_view, 3> names = {"local", "peer", "host"};
  return names[static_cast<std::size_t>(place)];
}

Result<TranslationReport> probe_translation(TimedTranslation& card,
                                            const TranslationOptions& options,
                                            const Progress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  TranslationReport report;
  report.facts = card.facts();
  report.seed = options.seed;
  Random random(options.seed);
  std::array<bool, 3> measured{};
  std::array<bool, 3> refused{};
  double own_hit_cycles = 0;
  for (std::size_t i = 0; i < all_mappings.size(); ++i) {
    const Mapping& mapping = all_mappings[i];
    const auto place = static_cast<std::size_t>(mapping.place);
    if (refused[place]) continue;
    PlaceFinding finding;
    finding.mapping = mapping;
    const double share = static_cast<double>(i) / all_mappings.size();
    const Progress part =
        part_of(progress, share, share + 1.0 / static_cast<double>(all_mappings.size()));
    report_progress(part, 0, "mapping memory");
    const auto done =
        map_and_measure({card, options, random, part, own_hit_cycles, !measured[place]}, finding);
    if (!done) {
      if (measured == std::array<bool, 3>{}) return tl::unexpected(done.error());
      report.failure = fmt::format("{}: {}", mapping_text(mapping), done.error().message);
      break;
    }
    if (finding.not_measured.empty()) {
      measured[place] = true;
      if (own_hit_cycles == 0 && mapping.place == MemoryPlace::local) {
        own_hit_cycles = finding.levels.steps.base_cycles;
      }
    }
    refused[place] = !measured[place];
    report.places.push_back(std::move(finding));
  }
  if (measured == std::array<bool, 3>{}) {
    return missing_capability("{}: nothing could be measured: {}", report.facts.name,
                              report.places.front().not_measured);
  }
  report.verdict = verdict_of(report);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report_progress(progress, 1, "done");
  return report;
}

Result<void> check_finished(const TranslationReport& report) {
  if (report.failure.empty()) return {};
  return check_failed("{}: {}", report.facts.name, report.failure);
}

}  // namespace demarc::probe
