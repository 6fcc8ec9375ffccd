// Chooses the number by which the slow runs of a victim are judged, and summarises it over all
// victims.
#include "demarc/study/tail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace demarc::study {
namespace {

std::string count_of_victims(std::size_t victims) {
  return fmt::format("{} victim{}", victims, victims == 1 ? "" : "s");
}

std::string worst_name(const TailSummary& summary) {
  if (summary.least_runs == summary.max_runs) {
    return fmt::format("worst of {} runs", summary.max_runs);
  }
  return fmt::format("worst of {} to {} runs", summary.least_runs, summary.max_runs);
}

}  // namespace

void add_neighbour(Tail& tail, std::size_t aggressor, std::span<const double> loaded,
                   std::span<const double> idle) {
  const bool first = tail.worst.runs == 0;
  const WorstVariation worst = worst_variation(loaded, idle);
  if (first || worst.percent > tail.worst.percent) {
    tail.worst = {worst.percent, worst.runs, aggressor};
  }
  const std::optional<Estimate> p99 = p99_variation_percent(loaded, idle);
  if (!p99) {
    tail.p99.reset();
  } else if (first || (tail.p99 && p99->value > tail.p99->percent.value)) {
    tail.p99 = P99Row{*p99, aggressor};
  }
}

TailFigure judged_by(const Tail& tail) {
  if (tail.p99) return {"p99", tail.p99->percent.value, tail.p99->aggressor};
  return {fmt::format("worst of {}", tail.worst.runs), tail.worst.percent, tail.worst.aggressor};
}

OverVictims over_victims(const std::vector<double>& percents) {
  if (percents.empty()) return {};
  return {
      percents.size(),
      std::accumulate(percents.begin(), percents.end(), 0.0) / static_cast<double>(percents.size()),
      *std::max_element(percents.begin(), percents.end())};
}

TailSummary summarize_tails(const std::vector<Tail>& tails) {
  std::vector<double> p99;
  std::vector<double> worst;
  TailSummary summary;
  for (const Tail& tail : tails) {
    if (tail.p99) {
      p99.push_back(tail.p99->percent.value);
      continue;
    }
    const std::size_t runs = tail.worst.runs;
    summary.least_runs = worst.empty() ? runs : std::min(summary.least_runs, runs);
    summary.max_runs = std::max(summary.max_runs, runs);
    worst.push_back(tail.worst.percent);
  }
  summary.p99 = over_victims(p99);
  summary.worst = over_victims(worst);
  return summary;
}

std::vector<NamedTail> named_tails(const TailSummary& summary) {
  std::vector<NamedTail> named;
  if (summary.p99.victims > 0) named.push_back({"p99", summary.p99});
  if (summary.worst.victims > 0) named.push_back({worst_name(summary), summary.worst});
  if (named.size() > 1) {
    for (NamedTail& one : named) one.name += " of " + count_of_victims(one.percent.victims);
  }
  return named;
}

}  // namespace demarc::study
