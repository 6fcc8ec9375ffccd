// Makes the variation table of a study: compares its cells with those beside idle neighbours.
#include <algorithm>

#include "demarc/study/study.hpp"

namespace demarc::study {
namespace {

const Cell* find_cell(const StudyResult& result, std::size_t mode, std::size_t victim,
                      std::optional<std::size_t> aggressor) {
  for (const Cell& cell : result.cells) {
    if (cell.mode == mode && cell.victim == victim && cell.aggressor == aggressor) return &cell;
  }
  return nullptr;
}

// The list that Cell::runs describes.
std::span<const double> whole_runs(const Cell& cell) {
  return cell.runs_ns.empty() ? cell.samples_ns : cell.runs_ns;
}

// The row of one victim, or nothing if it has no figures beside an idle neighbour or beside any
// aggressor.
std::optional<Variation> variation_of(const StudyResult& result, std::size_t mode,
                                      const Baseline& baseline) {
  const Cell* idle = find_cell(result, mode, baseline.victim, std::nullopt);
  if (idle == nullptr || idle->times.count == 0) return std::nullopt;
  Variation row;
  row.victim = baseline.victim;
  row.overhead = idle->times.mean / (static_cast<double>(result.plan.parts) * baseline.times.mean);
  bool first = true;
  for (std::size_t b = 0; b < result.plan.aggressors.size(); ++b) {
    const Cell* loaded = find_cell(result, mode, baseline.victim, b);
    if (loaded == nullptr || loaded->times.count == 0) {
      row.missing.push_back(b);
      continue;
    }
    const Estimate mean = variation_percent(loaded->times, idle->times);
    if (first || mean.value > row.mean_percent.value) {
      row.mean_percent = mean;
      row.worst_for_mean = b;
    }
    add_neighbour(row.tail, b, loaded->samples_ns, idle->samples_ns);
    const Estimate run = variation_percent(loaded->runs, idle->runs);
    if (first || run.value > row.run_percent.value) {
      row.run_percent = run;
      row.worst_for_run = b;
    }
    first = false;
    add_neighbour(row.run_tail, b, whole_runs(*loaded), whole_runs(*idle));
  }
  if (first) return std::nullopt;
  return row;
}

// What `number` gives of each row.
template <class Number>
auto of_each(const std::vector<Variation>& rows, Number number) {
  std::vector<decltype(number(rows.front()))> out;
  out.reserve(rows.size());
  for (const Variation& row : rows) out.push_back(number(row));
  return out;
}

}  // namespace

void summarize(StudyResult& result) {
  for (ModeSummary& mode : result.modes) {
    mode.victims.clear();
    for (const Baseline& baseline : result.baselines) {
      if (auto row = variation_of(result, mode.mode, baseline)) mode.victims.push_back(*row);
    }
    const auto& rows = mode.victims;
    mode.mean =
        over_victims(of_each(rows, [](const Variation& row) { return row.mean_percent.value; }));
    mode.tail = summarize_tails(of_each(rows, [](const Variation& row) { return row.tail; }));
    mode.run =
        over_victims(of_each(rows, [](const Variation& row) { return row.run_percent.value; }));
    mode.run_tail =
        summarize_tails(of_each(rows, [](const Variation& row) { return row.run_tail; }));
  }
}

}  // namespace demarc::study
