// Runs applications under several architectures and says what came out.
#pragma once

#include <string>
#include <vector>

#include "demarc/sim/translation/simulate.hpp"

namespace demarc::sim::translation {

// One application under the architectures asked for; summaries[i] belongs to architectures[i].
struct ApplicationResult {
  std::string name;
  std::vector<Summary> summaries;
  std::uint64_t bytes = 0;          // bytes of all its arrays, after rounding
  Split split = Split::roundrobin;  // the one it ran under; not `native`
};

struct Comparison {
  Settings settings;
  std::vector<Architecture> architectures;
  std::vector<ApplicationResult> apps;

  // Cycles of the first architecture, divided by those of architecture i.
  [[nodiscard]] static double speedup(const ApplicationResult& app, std::size_t i);
  [[nodiscard]] double mean_speedup(std::size_t i) const;  // arithmetic, over the applications
};

struct ComparisonRequest {
  Settings settings;
  std::vector<std::string> apps;  // names of application_table()
  std::vector<Architecture> architectures;
};
// Every (request, application, architecture) is a run of its own, over `threads` threads (0: all
// cores); the results do not depend on their number.
[[nodiscard]] Result<std::vector<Comparison>> compare_all(
    const std::vector<ComparisonRequest>& requests, unsigned threads = 0,
    const Progress& progress = {});

// Every (application, architecture) pair is a run of its own, over `threads` threads (0: all
// cores); the result does not depend on their number. `names` holds names of application_table().
[[nodiscard]] Result<Comparison> compare(const Settings& settings,
                                         const std::vector<std::string>& names,
                                         const std::vector<Architecture>& architectures,
                                         unsigned threads = 0, const Progress& progress = {});
// The same for one application of any kind. `timelines`, if not null, gets one per architecture.
[[nodiscard]] Result<Comparison> compare_application(const Settings& settings,
                                                     const Application& application,
                                                     const std::vector<Architecture>& architectures,
                                                     unsigned threads = 0,
                                                     const Progress& progress = {},
                                                     std::vector<Timeline>* timelines = nullptr);

[[nodiscard]] std::string to_json(const Comparison& comparison);  // schema "demarc.translate/1"
// What a text shows: the results alone, or also the settings that gave them.
enum class TextParts { results, all };
// A table for a terminal.
[[nodiscard]] std::string to_text(const Comparison& comparison, TextParts parts = TextParts::all);

// The same comparison under roundrobin, contiguous and native. The paper does not say which split
// it has, and its figures depend on it.
[[nodiscard]] Result<std::vector<Comparison>> compare_splits(
    const Settings& settings, const std::vector<std::string>& names,
    const std::vector<Architecture>& architectures, unsigned threads = 0,
    const Progress& progress = {});
// schema "demarc.translate.splits/1"
[[nodiscard]] std::string splits_json(const std::vector<Comparison>& splits);
// Speed-ups, a column for each split, beside the published ones.
[[nodiscard]] std::string splits_text(const std::vector<Comparison>& splits,
                                      TextParts parts = TextParts::all);
// "contiguous in RL, KM and roundrobin in ST"
[[nodiscard]] std::string splits_of_applications(const Comparison& comparison);

}  // namespace demarc::sim::translation
