// An executor that obeys a planted interference model. It is for tests, which know the truth that
// it must give back, and for trying the verb and its page on a machine without a GPU. Its answers
// come from a model and are never a measurement; its context says so.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"
#include "demarc/study/executor.hpp"

namespace demarc::study {

// What a workload asks of the machine, as shares of its time alone, and what it does to others.
struct PlantedDemand {
  double solo_ns = 100e3;  // alone on the whole GPU
  double compute = 0.5;    // share of the time that scales with SMs; the rest waits for memory
  double pressure = 1;     // slowdown added to the memory share of a neighbour, uncoloured
  bool wrong_under_load = false;  // its outputs differ when an aggressor runs
};

struct PlantedModel {
  std::string name = "planted";
  std::uint32_t sms = 132;
  double jitter = 0.01;          // relative deviation of one sample
  double shared_sm_penalty = 1;  // the compute share grows by this much per neighbour if SMs are
                                 // not split
  double leak = 0.02;            // what is left of a neighbour's pressure with colours
  std::map<std::string, PlantedDemand, std::less<>> workloads;  // unknown names are refused
  std::map<partition::Mode, std::string> unavailable;           // why
};

// The T(victim, aggressor) of the model without noise, in nanoseconds. No aggressor means idle
// neighbours.
[[nodiscard]] double planted_time(const PlantedModel& model, const PlantedDemand& victim,
                                  const PlantedDemand* aggressor, const Mode& mode,
                                  std::uint32_t parts);

// "h100" has the bundled workloads, with demands that follow published behaviour. An unknown name
// is an error that lists what exists.
[[nodiscard]] Result<PlantedModel> planted_model(std::string_view name);

[[nodiscard]] std::unique_ptr<Executor> make_planted_executor(PlantedModel model,
                                                              std::uint64_t seed);

}  // namespace demarc::study
