// Places as rr does, if no resource of the SM comes above 1.5 times its capacity.
#include "dispatch/policies/bounded_rr.hpp"

namespace demarc::sim {
namespace {

struct EveryUnitBounded {
  static bool holds(const Occupancy& machine, SmIndex sm, const BlockRequest& block) {
    for (std::size_t r = 0; r < machine.resources(); ++r) {
      const float share = static_cast<float>(machine.used(sm, r) + block.sm[r]) /
                          static_cast<float>(machine.max(r));
      if (!(share <= 1.5F)) return false;
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_fua(const PolicySettings& /*settings*/) {
  return std::make_unique<BoundedRoundRobin<EveryUnitBounded>>();
}

}  // namespace demarc::sim
