#include "dispatch/policies/scored.hpp"

#include <algorithm>

namespace demarc::sim {

std::uint32_t ScoredPolicy::choose(const Machine& machine, const BlockRequest& block) {
  Candidate best{0, no_sm};
  for (std::uint32_t sm = 0; sm < machine.sms(); ++sm) {
    if (!machine.fits(sm, block)) continue;
    const Candidate candidate{score(machine, sm, block), sm};
    if (best.sm == no_sm || best < candidate) best = candidate;
  }
  return best.sm;
}

std::size_t ScoredPolicy::choose_many(Machine& machine, BlockRequest block,
                                      std::span<std::uint32_t> out) {
  heap_.clear();
  for (std::uint32_t sm = 0; sm < machine.sms(); ++sm) {
    if (machine.fits(sm, block)) heap_.push_back({score(machine, sm, block), sm});
  }
  std::make_heap(heap_.begin(), heap_.end());
  std::size_t count = 0;
  while (count < out.size() && !heap_.empty()) {
    const std::uint32_t sm = heap_.front().sm;
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
