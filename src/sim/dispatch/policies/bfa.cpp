// Breadth-first allocation: takes the SM whose fullest scheduling resource stays emptiest.
#include "demarc/sim/dispatch/machine.hpp"
#include "dispatch/policies/fullest_share.hpp"
#include "dispatch/policies/scored.hpp"

namespace demarc::sim {
namespace {

class BreadthFirst final : public ScoredPolicy {
 public:
  std::size_t choose_many(Machine& machine, BlockRequest block, std::span<SmIndex> out) override {
    if (machine.levels_serve(block)) return machine.place_breadth_first(block, out);
    return ScoredPolicy::choose_many(machine, block, out);
  }

 protected:
  float score(const Occupancy& machine, SmIndex sm, const BlockRequest& block) const override {
    return fullest_share(machine, sm, block);
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_bfa(const PolicySettings& /*settings*/) {
  return std::make_unique<BreadthFirst>();
}

}  // namespace demarc::sim
