// Depth-first allocation: takes the SM whose fullest scheduling resource becomes fullest.
#include "demarc/sim/dispatch/machine.hpp"
#include "dispatch/policies/fullest_share.hpp"
#include "dispatch/policies/scored.hpp"

namespace demarc::sim {
namespace {

class DepthFirst final : public ScoredPolicy {
 public:
  std::size_t choose_many(Machine& machine, BlockRequest block, std::span<SmIndex> out) override {
    if (machine.levels_serve(block)) return machine.place_depth_first(block, out);
    return ScoredPolicy::choose_many(machine, block, out);
  }

 protected:
  float score(const Occupancy& machine, SmIndex sm, const BlockRequest& block) const override {
    return -fullest_share(machine, sm, block);
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_dfa(const PolicySettings& /*settings*/) {
  return std::make_unique<DepthFirst>();
}

}  // namespace demarc::sim
