// The paper's Figures 4 to 7 under each setting that it may have used (Wei, Li and Lu 2021, section
// 4). The text that we have names numbers but lacks the bars of the figures.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "demarc/sim/published.hpp"
#include "demarc/sim/translation/report.hpp"

namespace demarc::sim::translation {

// One reading of what the paper leaves open: settings that differ from the defaults.
struct StudyVariant {
  std::string name;
  std::string meaning;
  std::vector<std::string> assignments = {};  // as for apply_setting
  bool bypass_only = false;                   // a policy of the bypass; the other two do not change
};
[[nodiscard]] std::span<const StudyVariant> study_variants();
// Both readings of the paper's sentence on what a GMMU keeps, each under every split of the work:
// names of study_variants(). The first one, the defaults, always runs and is not named.
[[nodiscard]] std::vector<std::string> reading_variants();

struct StudyRun {
  StudyVariant variant;
  Comparison comparison;
};
struct Study {
  std::vector<StudyRun> runs;  // the first has the defaults and all three architectures
};

struct StudyOptions {
  Settings base;
  std::vector<std::string> apps;      // empty: all nine
  std::vector<std::string> variants;  // names; empty: all. The first of the table always runs
  unsigned threads = 0;
  bool bypass = true;  // the defaults run under the bypass, too
};
[[nodiscard]] Result<Study> reproduce_paper(const StudyOptions& options,
                                            const Progress& progress = {});

// A figure of ours beside what the paper says of it.
struct Claim {
  std::string name = {};
  const Published* paper = nullptr;  // none: the paper does not say it
  std::string elsewhere = {};        // then what is expected, and whose expectation it is
  double ours = 0;
  int decimals = 2;
  double low = 0;  // what counts as reproduced
  double high = 0;
  std::string fitted = {};  // settings that were chosen with this figure in view; empty: none
  [[nodiscard]] bool holds() const { return ours >= low && ours <= high; }
  [[nodiscard]] std::string shown() const;  // ours with its decimals: "1.10", never "-0.0"
  [[nodiscard]] std::string range() const;  // "4.33 to 5.29", "1.01 or more"
};
// A number of the paper counts as reproduced if ours lies within this share of it.
inline constexpr double reproduced_within = 0.1;
// The claims that can be judged from the applications and architectures that ran, those of the
// paper first. The first architecture is the centralised one, the second the distributed one, a
// third the bypass.
[[nodiscard]] std::vector<Claim> claims_of(const Comparison& comparison);

// The paper's speed-up of an application; null if its text names none.
[[nodiscard]] const Published* published_speedup(std::string_view app);

// A line for each setting of the run that was chosen with figures of the paper in view.
[[nodiscard]] std::string fitted_text(const Comparison& comparison);

[[nodiscard]] std::string study_json(const Study& study);  // schema "demarc.translate.study/1"
[[nodiscard]] std::string study_text(const Study& study, TextParts parts = TextParts::all);
// The runs side by side: a column for each, a row for each application and claim.
[[nodiscard]] std::string readings_text(const Study& study);

}  // namespace demarc::sim::translation
