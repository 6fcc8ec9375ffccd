// Compares the cells of two studies, and says in words what changed.
#include "demarc/study/comparison.hpp"

#include <algorithm>
#include <cmath>

#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

struct TimedCell {
  std::string mode, victim, aggressor;
  const Distribution* times;

  [[nodiscard]] std::string name() const {
    return fmt::format("{}: {} next to {}", mode, victim, aggressor);
  }
};

// The victims alone, and the cells whose times count.
std::vector<TimedCell> timed_cells(const StudyResult& study) {
  const Plan& plan = study.plan;
  std::vector<TimedCell> out;
  for (const Baseline& baseline : study.baselines) {
    out.push_back({"whole GPU", plan.victims[baseline.victim].name, "-", &baseline.times});
  }
  for (const Cell& cell : study.cells) {
    if (!counts(cell) || cell.times.count == 0) continue;
    out.push_back({plan.modes[cell.mode].name(), plan.victims[cell.victim].name,
                   cell.aggressor ? plan.aggressors[*cell.aggressor].name : "-", &cell.times});
  }
  return out;
}

const TimedCell* find_in(const std::vector<TimedCell>& cells, const std::string& name) {
  const auto found = std::find_if(cells.begin(), cells.end(),
                                  [&](const TimedCell& cell) { return cell.name() == name; });
  return found == cells.end() ? nullptr : &*found;
}

CellChange change_of(const TimedCell& now, const TimedCell& before) {
  CellChange change{.mode = now.mode, .victim = now.victim, .aggressor = now.aggressor};
  change.before_ns = before.times->mean;
  change.now_ns = now.times->mean;
  change.ratio = slowdown_of(variation_percent(*now.times, *before.times));
  change.verdict = judge_change(change.ratio);
  return change;
}

std::size_t count_of(const Comparison& comparison, Change verdict) {
  return static_cast<std::size_t>(
      std::count_if(comparison.cells.begin(), comparison.cells.end(),
                    [verdict](const CellChange& cell) { return cell.verdict == verdict; }));
}

std::string row_of(const CellChange& cell) {
  return fmt::format("  {:<16} {:<12} {:<12} {:>10.1f} {:>10.1f} {:>6.2f}x {:>16}  {}\n", cell.mode,
                     cell.victim, cell.aggressor, cell.before_ns / 1e3, cell.now_ns / 1e3,
                     cell.ratio.value,
                     cell.verdict == Change::unknown
                         ? "-"
                         : fmt::format("{:.2f}x to {:.2f}x", cell.ratio.low, cell.ratio.high),
                     to_string(cell.verdict));
}

}  // namespace

std::string_view to_string(Change verdict) {
  switch (verdict) {
    case Change::unchanged:
      return "unchanged";
    case Change::better:
      return "better";
    case Change::worse:
      return "worse";
    case Change::unknown:
      break;
  }
  return "unknown";
}

Change judge_change(const Estimate& ratio) {
  if (!std::isfinite(ratio.low) || !std::isfinite(ratio.high)) return Change::unknown;
  if (std::abs(ratio.value - 1) <= noise_share) return Change::unchanged;
  if (ratio.high < 1) return Change::better;
  return ratio.low > 1 ? Change::worse : Change::unchanged;
}

Comparison compare_studies(const StudyResult& before, std::string source, const StudyResult& now) {
  Comparison comparison;
  comparison.source = std::move(source);
  comparison.differing = differences(before, now);
  const auto cells_before = timed_cells(before);
  const auto cells_now = timed_cells(now);
  for (const TimedCell& cell : cells_now) {
    if (const TimedCell* other = find_in(cells_before, cell.name())) {
      comparison.cells.push_back(change_of(cell, *other));
    } else {
      comparison.only_now.push_back(cell.name());
    }
  }
  for (const TimedCell& cell : cells_before) {
    if (find_in(cells_now, cell.name()) == nullptr) comparison.only_before.push_back(cell.name());
  }
  return comparison;
}

std::string comparison_words(const Comparison& comparison) {
  if (comparison.cells.empty()) return "The two studies have no cell in common.";
  std::string out = fmt::format(
      "Of {} cells that both studies measured, {} take less time (better), {} take more (worse) "
      "and {} are unchanged (within {:.0f} %, or the interval includes 1.00x).",
      comparison.cells.size(), count_of(comparison, Change::better),
      count_of(comparison, Change::worse), count_of(comparison, Change::unchanged),
      100 * noise_share);
  if (const std::size_t unknown = count_of(comparison, Change::unknown); unknown > 0) {
    out += fmt::format(" {} have too few runs for an interval (unknown).", unknown);
  }
  return out;
}

std::string comparison_text(const Comparison& comparison, bool all) {
  std::string out = fmt::format("\nCompared with {}", comparison.source);
  out += comparison.differing.empty()
             ? ":\n"
             : fmt::format(", which was measured differently (there and now): {}:\n",
                           fmt::join(comparison.differing, "; "));
  const auto shown = [all](const CellChange& cell) {
    return all || cell.verdict != Change::unchanged;
  };
  if (std::any_of(comparison.cells.begin(), comparison.cells.end(), shown)) {
    out += fmt::format("  {:<16} {:<12} {:<12} {:>10} {:>10} {:>7} {:>16}\n", "mode", "victim",
                       "next to", "before us", "now us", "ratio", "95 % interval");
  }
  for (const CellChange& cell : comparison.cells) {
    if (shown(cell)) out += row_of(cell);
  }
  out += fmt::format("  {}\n", comparison_words(comparison));
  const auto list = [&](std::string_view where, const std::vector<std::string>& names) {
    if (!names.empty()) out += fmt::format("  Only in {}: {}\n", where, fmt::join(names, ", "));
  };
  list(comparison.source, comparison.only_before);
  list("this run", comparison.only_now);
  return out;
}

}  // namespace demarc::study
