// What changed between two studies, cell by cell. A cell of one is compared with the cell of the
// other that has the same mode, victim and aggressor, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "demarc/study/statistics.hpp"

namespace demarc::study {

struct StudyResult;

// A change of the mean within this share is none, however narrow its interval is.
inline constexpr double noise_share = 0.01;

enum class Change {
  unchanged,  // the change is within noise_share, or its interval includes 1
  better,     // less time
  worse,      // more time
  unknown     // too few runs for an interval
};
[[nodiscard]] std::string_view to_string(Change verdict);

struct CellChange {
  std::string mode;  // "whole GPU" for a victim alone
  std::string victim;
  std::string aggressor;  // "-": idle neighbours
  double before_ns = 0;   // mean times
  double now_ns = 0;
  Estimate ratio = {};  // now over before, with the interval of variation_percent()
  Change verdict = Change::unchanged;
};

struct Comparison {
  std::string source;                  // where the earlier study was read from
  std::vector<std::string> differing;  // differences() of the two studies
  std::vector<CellChange> cells;       // those that both measured, in the order of this study
  std::vector<std::string> only_now;   // "mask: va next to mm"
  std::vector<std::string> only_before;
};

// That of the mean times `now` and `before`, with the interval of their ratio.
[[nodiscard]] Change judge_change(const Estimate& ratio);

[[nodiscard]] Comparison compare_studies(const StudyResult& before, std::string source,
                                         const StudyResult& now);

// The cells that changed, or all of them, and how many did.
[[nodiscard]] std::string comparison_text(const Comparison& comparison, bool all);
// "3 cells take less time, 1 more ..."
[[nodiscard]] std::string comparison_words(const Comparison& comparison);

}  // namespace demarc::study
