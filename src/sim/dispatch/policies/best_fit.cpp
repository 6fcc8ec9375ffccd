// Best fit over several resources: a block goes where the free rest is as small, and as even over
// the resources, as possible. So no SM is left with one resource used up and the others useless.
// The score is the squared length of the free shares that stay (dot-product packing, Panigrahy et
// al. 2011, in its norm form).
#include "dispatch/policies/scored.hpp"

namespace demarc::sim {
namespace {

class BestFit final : public ScoredPolicy {
 protected:
  float score(const Occupancy& machine, SmIndex sm, const BlockRequest& block) const override {
    float sum = 0;
    for (std::size_t r = 0; r < machine.resources(); ++r) {
      const auto max = static_cast<float>(machine.max(r));
      const float left =
          1.0F - (static_cast<float>(machine.used(sm, r)) + static_cast<float>(block.sm[r])) / max;
      // Past its capacity a unit that does not block placement only slows: worse than free space.
      sum += left >= 0 ? left * left : 4.0F * left * left;
    }
    return sum;
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_best_fit(const PolicySettings& /*settings*/) {
  return std::make_unique<BestFit>();
}

}  // namespace demarc::sim
