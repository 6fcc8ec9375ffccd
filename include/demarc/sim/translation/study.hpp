// The paper's Figures 4 to 7 under each setting that it may have used (Wei, Li and Lu 2021, section
// 4). The text that we have names numbers but lacks the bars of the figures.
#pragma once

#include <span>
#include <string>
#include <vector>

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
};
[[nodiscard]] Result<Study> reproduce_paper(const StudyOptions& options,
                                            const Progress& progress = {});

// A sentence or figure of the paper beside ours.
struct Claim {
  std::string name;
  std::string published;
  double ours = 0;
  int decimals = 2;
  double low = 0;  // what counts as reproduced
  double high = 0;
  [[nodiscard]] bool holds() const { return ours >= low && ours <= high; }
};
// The claims that can be judged from the applications and architectures that ran. The first
// architecture is the centralised one, the second the distributed one, a third the bypass.
[[nodiscard]] std::vector<Claim> claims_of(const Comparison& comparison);

// The published speed-up of an application; 0 if the text names none.
[[nodiscard]] double published_speedup(std::string_view app);

[[nodiscard]] std::string study_json(const Study& study);  // schema "demarc.translate.study/1"
[[nodiscard]] std::string study_text(const Study& study, TextParts parts = TextParts::all);

}  // namespace demarc::sim::translation
