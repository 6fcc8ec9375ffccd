// What can be said about a study's workloads before anything is run: how much each would suffer
// from losing half the L2, and how much of the memory's bandwidth it would take from a neighbour.
// The room locality (predict_repeated) computes it from PTX, launches and the device's description,
// so a forecast needs no GPU.
//
// A study repeats its workloads, so the L2 is taken to be as the run before left it. If a workload
// has many launches, each kernel is followed once, in the middle one of its largest launches, and
// weighted by the threads of all of them. Arithmetic is left out: a kernel that computes much
// demands less than this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/study/executor.hpp"
#include "demarc/study/plan.hpp"

namespace demarc::study {

// One victim or aggressor, alone on the whole device.
struct WorkloadForecast {
  std::string name;
  std::string spec;
  std::string missing;         // not empty: why there is no forecast of it; the rest is 0
  std::uint64_t launches = 0;  // per run
  std::uint64_t kernels = 0;   // different ones among them
  bool complete = true;  // false: only the beginning of a run was followed, from empty caches,
                         // because the run is too long
  double half_l2_slowdown = 0;  // time with half of the L2 / with the whole
  // On half of the SMs: time with half of the L2 and of the bandwidths / with all of the memory.
  double half_memory_slowdown = 0;
  double l2_hit_rate = 0;        // with the whole L2
  double half_l2_hit_rate = 0;   // with half of it
  double dram_demand_share = 0;  // share of the DRAM's bandwidth
  double l2_demand_share = 0;    // share of what the L2 delivers
  friend bool operator==(const WorkloadForecast&, const WorkloadForecast&) = default;
};

struct Forecast {
  std::string device;                        // whose description it was made for
  std::string missing;                       // not empty: why there is no forecast at all
  std::vector<WorkloadForecast> victims;     // as in the plan
  std::vector<WorkloadForecast> aggressors;  // as in the plan
  // The largest number of warp requests that are looked up. The bound is a count, so it is the same
  // on every machine.
  static constexpr std::uint64_t max_requests = 4'000'000;
};

// `missing` says what cannot be forecast. A workload that does not exist, and PTX that cannot be
// read, are errors. Counts bound the work: one to three seconds of one core at most
// (docs/measurements/locality.md).
[[nodiscard]] Result<Forecast> forecast(const Plan& plan, const Executor& executor);

// Three thresholds: from which share of the DRAM's or the L2's bandwidth on neighbours feel an
// aggressor, from which share on a victim has anything to lose to it, and from which loss with half
// the L2 on the loss is mentioned.
inline constexpr double pressing_share = 0.25;
inline constexpr double exposed_share = 0.05;
inline constexpr double noted_slowdown = 1.05;

// Whether an aggressor, or a victim, reaches these. True without a forecast, because then nothing
// speaks against it.
[[nodiscard]] bool presses(const WorkloadForecast& aggressor);
[[nodiscard]] bool exposed(const WorkloadForecast& victim);

// Names who presses hardest, and what half the L2 costs whom: "By forecast va presses hardest on
// the memory: 93 % of the DRAM's bandwidth, 20 % of the L2's. Half the L2 costs nn 1.40 times its
// time." Empty if nothing is known.
[[nodiscard]] std::string forecast_words(const Forecast& forecast);

// Which of the plan's modes suits, without a measurement.
[[nodiscard]] std::string recommend(const Plan& plan, const Forecast& forecast);

// The forecast as a table for a terminal, one line per workload.
[[nodiscard]] std::string forecast_text(const Forecast& forecast);

// The workloads of victims and aggressors, without repetition.
[[nodiscard]] std::vector<const WorkloadForecast*> rows_of(const Forecast& forecast);

}  // namespace demarc::study
