// Takes the SM with the least mean use over all resources, including compute and other units; bfa
// only looks at the fullest scheduling resource.
#include "dispatch/policies/scored.hpp"

namespace demarc::sim {
namespace {

class LeastLoaded final : public ScoredPolicy {
 protected:
  float score(const Occupancy& machine, SmIndex sm, const BlockRequest& /*block*/) const override {
    float sum = 0;
    for (std::size_t r = 0; r < machine.resources(); ++r) {
      sum += static_cast<float>(machine.used(sm, r)) / static_cast<float>(machine.max(r));
    }
    return sum;
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_least_loaded(const PolicySettings& /*settings*/) {
  return std::make_unique<LeastLoaded>();
}

}  // namespace demarc::sim
