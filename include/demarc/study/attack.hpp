// The hunt for the worst neighbour of a partition. Neighbours are made from parameters
// (neighbour.hpp) and run beside every victim. Those that hurt most are bred from, and the worst
// are measured again.
//
// It is a seeded evolutionary loop. The first generation has every operation and every pattern.
// Later ones are children of the neighbours that hurt most so far, and new random ones. A neighbour
// is screened with few runs. The figures of the worst come from fresh samples of many runs, so a
// figure that was high by chance does not win. Neighbours that seemed to be above the limit are
// measured again until the limit is known to be broken or none is left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "demarc/base/progress.hpp"
#include "demarc/base/result.hpp"
#include "demarc/study/executor.hpp"
#include "demarc/study/neighbour.hpp"
#include "demarc/study/plan.hpp"
#include "demarc/study/statistics.hpp"
#include "demarc/study/tail.hpp"

namespace demarc::study {

struct AttackPlan {
  Mode mode;
  std::uint32_t parts = 2;
  std::vector<Workload> victims;
  std::vector<Operation> without;  // operations that no neighbour has
  // Breeding and verdict look at kernels only, not at the gaps between launches. The gaps are a
  // channel of their own (docs/isolation.md).
  bool kernels_alone = false;
  std::uint64_t seed = 1;
  std::size_t candidates = 1000;                             // neighbours screened, at most
  double seconds = std::numeric_limits<double>::infinity();  // after so long no new generation is
                                                             // begun
  std::size_t generation = 24;
  std::size_t keep = 10;  // neighbours measured again at a time, and ranked at most
  StoppingRule screening{1, 5, 5, 1, 0.25};
  StoppingRule proof;
  std::uint32_t rounds = 2;         // the proof has
  double max_slowdown = 1.05;       // the mean may have
  double max_tail_slowdown = 1.08;  // p99 may have, or the worst run where there are too few for it
};

// Number of neighbours of the first generation; `candidates` may not be smaller.
[[nodiscard]] std::size_t least_candidates();

// A neighbour as the screening saw it.
struct Screened {
  Neighbour genes;
  std::string name;
  std::string spec;        // the text by which lanes were told of it
  double percent = 0;      // mean slowdown of the victim that it slowed most
  std::size_t victim = 0;  // the victim that it slowed most
  std::size_t number = 0;  // in the order of the screening
};

// What a neighbour does to one victim, by one way of timing it.
struct Slowdown {
  std::size_t victim = 0;
  bool whole_runs = false;  // true: with the gaps between launches; false: kernels alone
  Estimate mean_percent;
  Tail tail;
};

struct RankedNeighbour {
  Screened screened;
  std::vector<Slowdown> slowdowns;  // by victim
  std::size_t worst_mean = 0;       // index of slowdowns
  std::size_t worst_tail = 0;
  double runs_per_second = 0;
  std::string wrong;  // not empty: what a victim beside it computed wrongly
};

// Neighbours that could not be tried, by operation or pattern and reason.
struct Refusal {
  std::string what;  // "host_load"
  std::string reason;
  std::size_t count = 0;
};

enum class Verdict { held, not_held, undecided };
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct AttackResult {
  AttackPlan plan;
  DeviceContext device;
  std::string account;  // what the stage said of itself
  std::size_t generations = 0;
  std::vector<Screened> screened;  // in the order of the screening
  std::vector<Refusal> refusals;
  std::vector<std::string> untried;     // operations and patterns of which no neighbour ran
  std::vector<RankedNeighbour> ranked;  // worst first
  // Number of neighbours that were above the limit in the screening and were not measured again,
  // because the limit was already broken.
  std::size_t uncleared = 0;
  bool complete = true;  // false: the time was up before the first generation was through
  std::string failure;   // not empty: the hunt ended with this
  Verdict verdict = Verdict::undecided;
  NeighbourMeans means;
};

// Seconds since any fixed moment.
using AttackClock = std::function<double()>;

// missing_capability if the mode, or every neighbour, is impossible here.
[[nodiscard]] Result<AttackResult> run_attack(const AttackPlan& plan, Executor& executor,
                                              const Progress& progress, const AttackClock& clock);

// "The partition HOLDS: ..." and what was looked at, in one or two sentences.
[[nodiscard]] std::string verdict_text(const AttackResult& result);
[[nodiscard]] std::string attack_text(const AttackResult& result);
// Schema "demarc.attack/2".
[[nodiscard]] std::string attack_json(const AttackResult& result, const std::string& command);

// Name of the launch file of ranked neighbour `index`: "01-atomic-random-4MiB-264x256.json".
[[nodiscard]] std::string ranked_file(const AttackResult& result, std::size_t index);
// Makes the folder if there is none. An error names the folder if nothing can be written into it.
[[nodiscard]] Result<void> open_folder(const std::filesystem::path& folder);
// Writes the launch files of the ranked neighbours into `folder`, each with its PTX beside it. A
// launch file appears only after its PTX.
[[nodiscard]] Result<void> write_ranked(const AttackResult& result,
                                        const std::filesystem::path& folder);

}  // namespace demarc::study
