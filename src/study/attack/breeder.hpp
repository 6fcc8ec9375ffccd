// Which neighbours are tried next. Knows nothing of devices.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "demarc/study/attack.hpp"

namespace demarc::study {

// Counts what could not be tried.
class Refusals {
 public:
  void add(const std::string& what, const std::string& reason);
  [[nodiscard]] const std::vector<Refusal>& all() const { return all_; }

 private:
  std::vector<Refusal> all_;
};

// Under what a neighbour that cannot be tried is counted: its pattern where that is the cause, else
// its operation.
[[nodiscard]] std::string refused_part(const Neighbour& neighbour);

// Never gives the same neighbour twice, and none with an operation that the plan leaves out. Those
// that the means exclude are counted and left out.
class Breeder {
 public:
  Breeder(const AttackPlan& plan, NeighbourMeans means);

  // One of every operation, and one of every pattern, as far as the means allow them.
  [[nodiscard]] std::vector<Neighbour> first(Refusals& refusals);
  // One more that is allowed, of an operation or a pattern; none where none was found.
  [[nodiscard]] std::vector<Neighbour> another(Operation operation, Refusals& refusals);
  [[nodiscard]] std::vector<Neighbour> another(Pattern pattern, Refusals& refusals);
  // Children of those of `so_far` that hurt most, and strangers; fewer than `count` where nothing
  // new can be found.
  [[nodiscard]] std::vector<Neighbour> next(const std::vector<Screened>& so_far, std::size_t count,
                                            Refusals& refusals);

 private:
  [[nodiscard]] bool accept(Neighbour& neighbour, Refusals& refusals);
  [[nodiscard]] bool new_one(const Neighbour& neighbour);
  // Not even the least demanding one is allowed.
  [[nodiscard]] bool hopeless(Operation operation, Pattern pattern) const;

  [[nodiscard]] bool left_out(Operation operation) const;

  Random random_;
  std::vector<Operation> without_;
  NeighbourMeans means_;
  std::set<std::vector<std::uint64_t>> seen_;
};

}  // namespace demarc::study
