// One visit to a cell of a study, for code that decides which cells there are.
#pragma once

#include <vector>

#include "demarc/study/study.hpp"

namespace demarc::study {

// Runs that are not counted; returns how many there were.
[[nodiscard]] Result<std::uint32_t> warm_up(Lane& lane, const StoppingRule& rule);

// Batches until the rule is satisfied. Appends to `into` and, where the lane tells them, whole runs
// to `runs`.
[[nodiscard]] Result<void> take_samples(Lane& lane, const StoppingRule& rule,
                                        std::vector<double>& into, std::vector<double>& runs);

// What the victim computes without a neighbour; check_failed where that is wrong already.
[[nodiscard]] Result<Outputs> solo_outputs(Lane& lane, const Workload& victim);

struct VisitPair {
  const Workload* victim = nullptr;
  const Workload* aggressor = nullptr;  // null: idle neighbours
  const Outputs* solo = nullptr;        // of the victim
};

// Times the victim in lane 0 beside the aggressor in all others, and adds what was seen to the
// cell. A workload that a lane does not take leaves the cell out. A wrong output, a command
// that failed, and an aggressor that was not at work, are errors of the cell.
[[nodiscard]] Result<void> visit_cell(const StoppingRule& rule, Stage& stage, const VisitPair& pair,
                                      Cell& cell);

// Ends what the lanes run in. An error casts doubt on all that they answered.
[[nodiscard]] Result<void> finish_lanes(Stage& stage);

}  // namespace demarc::study
