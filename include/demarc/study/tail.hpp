// How much slower a victim's slow runs become; a mean can hide them. They are judged by p99 if the
// samples carry one (p99_least_runs), else by the worst run. Each number has its own name: "p99",
// "worst of 40".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "demarc/study/statistics.hpp"

namespace demarc::study {

// By how many per cent p99 beside the worst aggressor is above p99 beside idle neighbours.
struct P99Row {
  Estimate percent;
  std::size_t aggressor = 0;
};

// The same for the worst run.
struct WorstRow {
  double percent = 0;
  std::size_t runs = 0;  // the worst of how many, beside the aggressor and beside idle neighbours
  std::size_t aggressor = 0;
};

struct Tail {
  std::optional<P99Row> p99;  // if the runs beside every neighbour, idle or not, carry one
  WorstRow worst;
};

// Adds the runs beside one more aggressor. Neither list may be empty.
void add_neighbour(Tail& tail, std::size_t aggressor, std::span<const double> loaded,
                   std::span<const double> idle);

// The number that the victim is judged by.
struct TailFigure {
  std::string name;  // "p99", "worst of 40"
  double percent = 0;
  std::size_t aggressor = 0;
};
[[nodiscard]] TailFigure judged_by(const Tail& tail);

// Per cent, over the victims that have the number; all zeros if none has.
struct OverVictims {
  std::size_t victims = 0;
  double average = 0;
  double maximum = 0;
};
[[nodiscard]] OverVictims over_victims(const std::vector<double>& percents);

// Every victim is counted once, under the name of the number that it is judged by.
struct TailSummary {
  OverVictims p99;             // p99 of the victims whose runs carry a p99
  OverVictims worst;           // worst of the others
  std::size_t least_runs = 0;  // the worst of how many, over those others
  std::size_t max_runs = 0;
};
[[nodiscard]] TailSummary summarize_tails(const std::vector<Tail>& tails);

// The one or two numbers of a summary: "p99", "worst of 40 runs", "worst of 25 to 40 runs". If
// there are both, each name says of how many victims it is: "p99 of 5 victims".
struct NamedTail {
  std::string name;
  OverVictims percent;
};
[[nodiscard]] std::vector<NamedTail> named_tails(const TailSummary& summary);

}  // namespace demarc::study
