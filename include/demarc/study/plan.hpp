// What an interference study runs, and in which order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/study/mode.hpp"

namespace demarc::study {

// How many times a victim is timed in one visit to a cell.
struct StoppingRule {
  std::uint32_t warm_up = 5;   // launches run and thrown away, counted in the result
  std::uint32_t least = 100;   // samples always taken, unless longest_seconds ends the visit first
  std::uint32_t most = 400;    // samples never exceeded
  double precision = 0.005;    // stop when the 95 % half width of the mean is within this share
  double longest_seconds = 2;  // a visit ends after this long, with what it has
};

// One thing that runs. The executor resolves `spec`: the name of a bundled kernel ("cfd",
// "dram_write"), at a scale ("va@large") or with parameters ("va@n=4096"), "launch:FILE.json",
// "launch:FILE.json@SCALE", "stream:FILE" (accesses for a simulated GPU), or "cmd:COMMAND LINE".
struct Workload {
  std::string name;  // shown in tables; unique within the victims and within the aggressors
  std::string spec;
  friend bool operator==(const Workload&, const Workload&) = default;
};

// What the workload does, in words: the summary of its bundled kernel. Empty for anything else.
[[nodiscard]] std::string meaning_of(const Workload& workload);

// A command line.
[[nodiscard]] Workload command_workload(const std::string& line);
[[nodiscard]] bool is_command(const Workload& workload);

// T(A, B): victim A runs in part 0, and aggressor B in a loop in each of the other parts. Without B
// these are idle.
struct Visit {
  std::size_t victim = 0;
  std::optional<std::size_t> aggressor;
  friend bool operator==(const Visit&, const Visit&) = default;
};

struct Plan {
  std::uint32_t parts = 2;  // equal shares of the GPU; 2, 3 or 4
  std::vector<Mode> modes;
  std::vector<Workload> victims;
  std::vector<Workload> aggressors;
  StoppingRule rule;
  std::uint32_t rounds = 2;  // how often the whole matrix of a mode is gone through
  std::uint64_t seed = 1;
};

// A command of the plan, of the victims before the aggressors; null if it has none.
[[nodiscard]] const Workload* first_command(const Plan& plan);

// What the times of commands are, in a sentence; empty if no victim is a command.
[[nodiscard]] std::string words_on_commands(const Plan& plan);

// Digests of the files that workloads of a plan are made of, by Workload::spec. Workloads without
// files of their own have none, and a file that cannot be read has "not read".
using Contents = std::map<std::string, std::string>;
[[nodiscard]] Contents contents_of(const Plan& plan);

// Changes the rule of a checked plan so that every cell has as many samples as a p99 takes
// (statistics.hpp), over all its rounds. Only longest_seconds can still end a visit earlier.
void carry_p99(Plan& plan);

// An error names what is missing, repeated or out of range, or a mode in which a command of the
// plan would run outside of the part under which it is reported.
[[nodiscard]] Result<void> check_plan(const Plan& plan);

// The modes under which a command can run, without the variants for colours and
// launches: "none,timeslice,mps,mask,throttle".
[[nodiscard]] std::string modes_for_commands();

// The order of the modes: a permutation of plan.modes, drawn with plan.seed.
[[nodiscard]] std::vector<std::size_t> mode_order(const Plan& plan);

// One round within a mode: every victim once with an idle neighbour and once with every aggressor.
// Victims come in random order; the visits of one stay together, because loading it costs. Its
// neighbours, the idle one included, come in random order, so that drift of the card does not fall
// on one aggressor.
[[nodiscard]] std::vector<Visit> visit_order(const Plan& plan, std::size_t mode,
                                             std::uint32_t round);

// A visit and the mode that it is made under; without a mode, the victim runs alone on the whole
// GPU.
struct PlannedVisit {
  std::optional<std::size_t> mode;
  Visit visit;
  std::uint64_t taken = 0;  // launches of the cell that an earlier study measured or warmed up with
  friend bool operator==(const PlannedVisit&, const PlannedVisit&) = default;
};
// Every victim alone on the whole GPU, then the first round of every mode, in the order in which a
// study makes these visits.
[[nodiscard]] std::vector<PlannedVisit> planned_visits(const Plan& plan);

// "MM,VA,cmd:python3 train.py": names from a comma list; "cmd:", "launch:" and "stream:" entries
// are kept whole and named by their last path component. An empty list or a repeated name is an
// error.
[[nodiscard]] Result<std::vector<Workload>> parse_workloads(std::string_view text,
                                                            std::string_view option);
// That bundled kernels of these names exist. Planted models have names of their own.
[[nodiscard]] Result<void> check_bundled(const std::vector<Workload>& workloads,
                                         std::string_view option);

}  // namespace demarc::study
