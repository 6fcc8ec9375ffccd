// What can be said of a study's workloads before anything is run: how much each would suffer from
// losing half the L2, and how much of the memory's bandwidth it would take from a neighbour. From
// its PTX, its launches and the device's description, by the room locality (predict_repeated): a
// forecast needs no GPU.
//
// A study repeats its workloads, so the L2 is taken to be as the run before left it. Of a workload
// of many launches each kernel is followed once, in the middle one of its largest launches, and
// weighed by the threads of all of them. Arithmetic is left out: a kernel that computes much
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
  std::string missing;         // not empty: there is no forecast of it, and why; the rest is 0
  std::uint64_t launches = 0;  // of a run
  std::uint64_t kernels = 0;   // different ones among them
  bool complete = true;  // false: of a run's beginning, from empty caches; the rest is too long
  double half_l2_slowdown = 0;  // time with half of the L2 / with the whole
  // On half of the SMs: time with half of the L2 and of the bandwidths / with all of the memory.
  double half_memory_slowdown = 0;
  double l2_hit_rate = 0;        // with the whole L2
  double half_l2_hit_rate = 0;   // and with half of it
  double dram_demand_share = 0;  // of the DRAM's bandwidth
  double l2_demand_share = 0;    // of what the L2 delivers
  friend bool operator==(const WorkloadForecast&, const WorkloadForecast&) = default;
};

struct Forecast {
  std::string device;                        // whose description it was made for
  std::string missing;                       // not empty: there is none at all, and why
  std::vector<WorkloadForecast> victims;     // as in the plan
  std::vector<WorkloadForecast> aggressors;  // as in the plan
  // What is counted, and so the same on every machine: warp requests looked up, at most.
  static constexpr std::uint64_t most_requests = 4'000'000;
};

// What cannot be forecast is said in `missing`; an error is a workload that does not exist, or PTX
// that cannot be read. The work is bounded by counts: one to three seconds of one core at most
// (docs/measurements/locality.md).
[[nodiscard]] Result<Forecast> forecast(const Plan& plan, const Executor& executor);

// From this share of the DRAM's or the L2's bandwidth on a neighbour of the memory feels an
// aggressor; from this one on a victim has anything to lose to it; from this loss with half the L2
// on it is worth a word.
inline constexpr double pressing_share = 0.25;
inline constexpr double exposed_share = 0.05;
inline constexpr double noted_slowdown = 1.05;

// Of an aggressor, and of a victim; true where there is no forecast: nothing speaks against it.
[[nodiscard]] bool presses(const WorkloadForecast& aggressor);
[[nodiscard]] bool exposed(const WorkloadForecast& victim);

// Who presses hardest, and what half the L2 costs whom: "By forecast va presses hardest on the
// memory: 93 % of the DRAM's bandwidth, 20 % of the L2's. Half the L2 costs nn 1.40 times its
// time." Empty where nothing is known.
[[nodiscard]] std::string forecast_words(const Forecast& forecast);

// Which of the plan's modes suits, with nothing measured.
[[nodiscard]] std::string recommend(const Plan& plan, const Forecast& forecast);

// The forecast as a table for a terminal, one line per workload.
[[nodiscard]] std::string forecast_text(const Forecast& forecast);

// The workloads of victims and aggressors, each once.
[[nodiscard]] std::vector<const WorkloadForecast*> rows_of(const Forecast& forecast);

}  // namespace demarc::study
