// Places as rr does, if the largest use plus the largest request is at most 1.5.
//
// Both are shares of their capacities. The rule must hold for the resources below n_boundary, and
// for the rest.
#include "dispatch/policies/bounded_rr.hpp"

namespace demarc::sim {
namespace {

struct MaximaTogether {
  static bool holds(const Occupancy& machine, SmIndex sm, const BlockRequest& block) {
    const std::size_t boundary = machine.spec().n_boundary;
    return within(machine, sm, block, 0, boundary) &&
           within(machine, sm, block, boundary, machine.resources());
  }
  static bool within(const Occupancy& machine, SmIndex sm, const BlockRequest& block,
                     std::size_t from, std::size_t to) {
    float used = 0;
    float asked = 0;
    for (std::size_t r = from; r < to; ++r) {
      const auto max = static_cast<float>(machine.max(r));
      used = std::max(used, static_cast<float>(machine.used(sm, r)) / max);
      asked = std::max(asked, static_cast<float>(block.sm[r]) / max);
    }
    return used + asked <= 1.5F;
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_smk(const PolicySettings& /*settings*/) {
  return std::make_unique<BoundedRoundRobin<MaximaTogether>>();
}

}  // namespace demarc::sim
