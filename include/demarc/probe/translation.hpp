// `demarc probe translation`: TLBs, page walks, links and atomics of one card, for its own memory,
// the memory of a peer and pinned host memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/probe/access_rates.hpp"
#include "demarc/probe/tlb_levels.hpp"

namespace demarc::probe {

struct TranslationOptions {
  std::uint64_t seed = 1;
  LevelOptions levels;  // max_lines and entries are chosen by the probe
};

// What was found at one place with pieces of one size.
struct PlaceFinding {
  Mapping mapping;
  std::string not_measured;  // why it was not measured; empty: it was
  std::uint64_t bytes = 0;   // mapped

  LevelFinding levels;
  // For the first pieces of a place alone.
  std::optional<WalkFinding> walks;
  std::optional<CachingFinding> caching;
  std::optional<RateTable> rates;
};

struct TranslationReport {
  TranslationFacts facts;
  std::uint64_t seed = 0;
  std::vector<std::string> verdict;  // sentences, the most important first
  std::vector<PlaceFinding> places;
  std::string failure;  // failure of the card that ended the probe early; empty: none
  double seconds = 0;   // wall time
};

// missing_capability if nothing could be measured. Other errors are those of the first memory that
// was measured. If one place or size is refused, its finding says so. A failure after a place was
// measured ends the probe and stands in the report.
[[nodiscard]] Result<TranslationReport> probe_translation(TimedTranslation& card,
                                                          const TranslationOptions& options,
                                                          const Progress& progress);

// check_failed if the card failed on the way.
[[nodiscard]] Result<void> check_finished(const TranslationReport& report);

inline constexpr std::string_view translation_schema = "demarc.probe.translation/1";
[[nodiscard]] std::string translation_to_json(const TranslationReport& report);
[[nodiscard]] std::string translation_to_text(const TranslationReport& report);

}  // namespace demarc::probe
