// A divided card on which neighbours are tried: its stage, its victims and what they compute alone.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "demarc/study/attack.hpp"
#include "gpu/study_folder.hpp"
#include "visit.hpp"

namespace demarc::study {

// One neighbour to be tried.
struct Candidate {
  Neighbour genes;
  Workload workload;
};

// What a batch of candidates did.
struct Measured {
  std::vector<Cell> idle;                 // by victim
  std::vector<std::vector<Cell>> beside;  // by candidate, by victim
  std::vector<std::string> refused;       // by candidate; not empty: no lane took it, and why
};

class Ground {
 public:
  // Divides the card, after every victim has shown what it computes alone.
  [[nodiscard]] static Result<Ground> open(const AttackPlan& plan, Executor& executor);

  // Writes the neighbour's files, which live as long as the ground.
  [[nodiscard]] Result<Candidate> candidate(const Neighbour& genes, std::size_t number) const;

  // Every candidate beside every victim, in an order drawn from `seed`, `rounds` times; idle
  // neighbours lie among them. check_failed, with the pair, where anything but the taking of a
  // candidate goes wrong: nothing can be run after that.
  [[nodiscard]] Result<Measured> measure(const std::vector<Candidate>& candidates,
                                         const StoppingRule& rule, std::uint32_t rounds,
                                         std::uint64_t seed, const Progress& progress);

  [[nodiscard]] Result<void> finish() { return finish_lanes(*stage_); }
  [[nodiscard]] std::string account() const { return stage_->account(); }
  [[nodiscard]] const NeighbourMeans& means() const { return means_; }

 private:
  Ground(const AttackPlan& plan, Executor& executor) : plan_(&plan), executor_(&executor) {}
  [[nodiscard]] Result<std::string> take(const Workload& neighbour);
  [[nodiscard]] Result<void> visit(std::size_t victim, const Workload* neighbour,
                                   const StoppingRule& rule, Cell& cell);

  const AttackPlan* plan_;
  Executor* executor_;
  std::shared_ptr<StudyFolder> folder_;
  NeighbourMeans means_;
  std::vector<Outputs> solo_;  // by victim
  std::unique_ptr<Stage> stage_;
};

}  // namespace demarc::study
