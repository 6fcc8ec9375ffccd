// Chooses the SM that fits with the smallest score, for one block or many at a time.
#include "dispatch/policies/scored.hpp"

#include <algorithm>

#include "demarc/sim/dispatch/machine.hpp"

namespace demarc::sim {

SmIndex ScoredPolicy::choose(const Occupancy& machine, const BlockRequest& block) {
  Candidate best{0, no_sm};
  for (const SmIndex sm : indices<SmIndex>(machine.sms())) {
    if (!machine.fits(sm, block)) continue;
    const Candidate candidate{score(machine, sm, block), sm};
    if (best.sm == no_sm || best < candidate) best = candidate;
  }
  return best.sm;
}

std::size_t ScoredPolicy::choose_many(Machine& machine, BlockRequest block,
                                      std::span<SmIndex> out) {
  heap_.clear();
  for (const SmIndex sm : indices<SmIndex>(machine.sms())) {
    if (machine.fits(sm, block)) heap_.push_back({score(machine, sm, block), sm});
  }
  std::make_heap(heap_.begin(), heap_.end());
  std::size_t count = 0;
  while (count < out.size() && !heap_.empty()) {
    const SmIndex sm = heap_.front().sm;
    machine.place(sm, block);
    out[count++] = sm;
    ++block.block;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    if (!machine.fits(sm, block)) continue;
    heap_.push_back({score(machine, sm, block), sm});
    std::push_heap(heap_.begin(), heap_.end());
  }
  return count;
}

}  // namespace demarc::sim
