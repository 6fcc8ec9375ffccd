// A hunt on an executor whose truth is planted, for the tests of attack.hpp.
#pragma once

#include "demarc/launch/launch.hpp"
#include "demarc/study/attack.hpp"
#include "scripted_executor.hpp"

namespace demarc::study {

inline bool named(const Workload* neighbour, std::string_view part) {
  return neighbour != nullptr && neighbour->name.find(part) != std::string::npos;
}

// Lanes take everything but what they lack.
inline NeighbourMeans planted_means() {
  NeighbourMeans means;
  means.bytes = std::uint64_t{1} << 30U;
  means.shared_bytes = gpu::max_shared_bytes;
  means.slice_lines = {0, 128};
  means.lacking[Need::host_memory] = "no host memory here";
  means.lacking[Need::copy_engines] = "no copy engines here";
  return means;
}

// A ground on which stores hurt a little, random ones more, and random stores of one size and shape
// most: 40 %.
inline double time_on_the_ground(const Workload& victim, const Workload* neighbour) {
  double time = victim.name == "b" ? 200 : 100;
  if (victim.name == "b" && named(neighbour, "-store-")) time *= 1.02;
  if (victim.name == "b" && named(neighbour, "-store-random-")) time *= 1.05;
  if (victim.name == "b" && named(neighbour, "-store-random-") && named(neighbour, "MiB")) {
    time *= 1.1;
  }
  if (victim.name == "b" && named(neighbour, "-store-random-") && named(neighbour, "x512")) {
    time *= 1.2;
  }
  return time;
}

inline AttackPlan plan_of(std::size_t candidates) {
  AttackPlan plan;
  plan.mode = {partition::Mode::mask, true};
  plan.victims = {{"a", "a"}, {"b", "b"}};
  plan.candidates = candidates;
  plan.keep = 4;
  plan.screening = {0, 2, 2, 1, 10};
  plan.proof = {0, 4, 4, 1, 10};
  plan.rounds = 1;
  return plan;
}

inline const AttackClock no_clock = [] { return 0.0; };

inline Script planted_script() {
  Script script;
  script.means = planted_means();
  script.time = time_on_the_ground;
  return script;
}

inline Result<AttackResult> hunt(Script& script, const AttackPlan& plan,
                                 const AttackClock& clock = no_clock) {
  ScriptedExecutor executor(script);
  return run_attack(plan, executor, {}, clock);
}

}  // namespace demarc::study
