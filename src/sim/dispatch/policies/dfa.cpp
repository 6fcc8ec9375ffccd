// Depth-first allocation: the SM whose fullest scheduling resource becomes fullest.
#include "dispatch/policies/scored.hpp"
#include "dispatch/policies/usage_levels.hpp"

namespace demarc::sim {
namespace {

class DepthFirst final : public ScoredPolicy {
 protected:
  float score(const Machine& machine, std::uint32_t sm, const BlockRequest& block) const override {
    return -fullest_share(machine, sm, block);
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_dfa(const PolicySettings& /*settings*/) {
  return std::make_unique<DepthFirst>();
}

}  // namespace demarc::sim
