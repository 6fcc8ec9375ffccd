// What becomes of a victim's slow runs, which a mean can hide. They are judged by p99 where the
// samples carry one (p99_least_runs), else by the worst run, and each number goes by its own name:
// "p99", "worst of 40".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "demarc/study/statistics.hpp"

namespace demarc::study {

// p99 beside the aggressor that makes it worst, per cent more than beside idle neighbours.
struct P99Row {
  Estimate percent;
  std::size_t aggressor = 0;
};

// The same of the worst run.
struct WorstRow {
  double percent = 0;
  std::size_t runs = 0;  // the worst of how many, beside the aggressor and beside idle neighbours
  std::size_t aggressor = 0;
};

struct Tail {
  std::optional<P99Row> p99;  // where the runs beside every neighbour, idle or not, carry one
  WorstRow worst;
};

// Takes in the runs beside one more aggressor. Neither list may be empty.
void add_neighbour(Tail& tail, std::size_t aggressor, std::span<const double> loaded,
                   std::span<const double> idle);

// The number that the victim is judged by.
struct TailFigure {
  std::string name;  // "p99", "worst of 40"
  double percent = 0;
  std::size_t aggressor = 0;
};
[[nodiscard]] TailFigure judged_by(const Tail& tail);

// Per cent over those victims that have the number; all zeros where none has.
struct OverVictims {
  std::size_t victims = 0;
  double average = 0;
  double maximum = 0;
};
[[nodiscard]] OverVictims over_victims(const std::vector<double>& percents);

// Every victim is counted once, under the name of the number that it is judged by.
struct TailSummary {
  OverVictims p99;             // of the victims whose runs carry a p99
  OverVictims worst;           // of the others
  std::size_t least_runs = 0;  // the worst of how many, over those others
  std::size_t most_runs = 0;
};
[[nodiscard]] TailSummary summarize_tails(const std::vector<Tail>& tails);

// The one or two numbers of a summary: "p99", "worst of 40 runs", "worst of 25 to 40 runs"; where
// there are both, with how many victims each is of: "p99 of 5 victims".
struct NamedTail {
  std::string name;
  OverVictims percent;
};
[[nodiscard]] std::vector<NamedTail> named_tails(const TailSummary& summary);

}  // namespace demarc::study
