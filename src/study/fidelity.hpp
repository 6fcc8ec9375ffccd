// How far simulated interference is from measured: the cells of a study beside those of a table
// that was measured on a card (docs/measurements/isolate-*.csv).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/study/forecast.hpp"
#include "demarc/study/study.hpp"

namespace demarc::study {

// Mean time of a victim's kernels in one cell of the table.
struct MeasuredTime {
  std::string mode;
  std::string victim;
  std::string aggressor;  // empty: idle neighbours
  double us = 0;
};

// Lines "mode,victim,aggressor,runs,kernels_mean_us,...", with a header; "-" is an idle neighbour.
[[nodiscard]] Result<std::vector<MeasuredTime>> parse_measured(std::string_view csv,
                                                               std::string_view source);

// By how much an aggressor slows a victim, in per cent of its time beside idle neighbours.
struct ComparedCell {
  std::string victim;
  std::string aggressor;
  double measured = 0;
  double simulated = 0;
  [[nodiscard]] double error() const;  // in points
};

// Time beside idle neighbours over the time alone on the whole card.
struct ComparedCost {
  std::string victim;
  double measured = 0;
  double simulated = 0;
};

struct Fidelity {
  std::vector<ComparedCell> cells;  // the worst first
  std::vector<ComparedCost> costs;  // as in the plan
  double mean_error = 0;            // of the cells' errors, in points
  double median_error = 0;
  double rank_correlation = 0;  // Spearman's, of simulated and measured slowdowns
};

// Every cell of the study's first mode. An error names what the table lacks.
[[nodiscard]] Result<Fidelity> compare(const std::vector<MeasuredTime>& measured,
                                       const StudyResult& simulated);

[[nodiscard]] std::string fidelity_text(const Fidelity& fidelity);

// What a forecast says that half the memory costs on half of the SMs, beside what colours cost the
// card there: time under `mask+color` over time under `mask`, idle neighbours. Where the addresses
// of colours take instructions, these are part of what was measured and not of the forecast.
struct ForecastFidelity {
  std::vector<ComparedCost> costs;   // as in the forecast; `simulated` is what is forecast
  std::vector<std::string> missing;  // victims without a forecast
  double mean_error = 0;             // in points
  double rank_correlation = 0;       // Spearman's
};

// The forecast's victims. An error names what the table lacks.
[[nodiscard]] Result<ForecastFidelity> compare(const std::vector<MeasuredTime>& measured,
                                               const Forecast& forecast);

[[nodiscard]] std::string fidelity_text(const ForecastFidelity& fidelity);

// A simulated card whose slowdowns under `mask` were compared with a card's: what was reached in
// the bench's 90 cells, each rounded to the worse side. bench/study/fidelity_bench.cpp refuses to
// be further from the card.
struct CardFidelity {
  std::string_view device;
  std::string_view table;  // table of docs/measurements
  double mean_error = 0;   // in points
  double rank_correlation = 0;
  double worst_error = 0;
  // Of what half the memory costs the study's workloads, in points; 0: it cannot be compared, as
  // the addresses of the card's colours take instructions.
  double forecast_error = 0;
  double forecast_rank_correlation = 0;
};
[[nodiscard]] std::span<const CardFidelity> compared_cards();

// What a study on that simulated device says of the error to expect.
[[nodiscard]] std::string expected_error(std::string_view device);

// Places in the order of size, 1 the least; equals share the mean of theirs.
[[nodiscard]] std::vector<double> ranks_of(const std::vector<double>& values);

}  // namespace demarc::study
