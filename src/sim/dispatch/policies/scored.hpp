// Base of policies that rank SMs by a number: the SM that fits and has the smallest score, the
// lowest SM number among equals.
#pragma once

#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {

class ScoredPolicy : public DispatchPolicy {
 public:
  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override;
  // Scores every SM once, then only the one just placed on: score() may depend on the state of its
  // own SM alone.
  std::size_t choose_many(Machine& machine, BlockRequest block, std::span<SmIndex> out) override;

 protected:
  // Called only for an SM that the block fits.
  [[nodiscard]] virtual float score(const Occupancy& machine, SmIndex sm,
                                    const BlockRequest& block) const = 0;

 private:
  struct Candidate {
    float score;
    SmIndex sm;
    // Order of a heap whose front is the best.
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.score > b.score || (a.score == b.score && a.sm > b.sm);
    }
  };
  std::vector<Candidate> heap_;
};

}  // namespace demarc::sim
