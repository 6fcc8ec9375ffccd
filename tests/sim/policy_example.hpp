#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {
namespace {

// The highest-numbered SM with room.
class LastFit final : public DispatchPolicy {
 public:
  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override {
    for (SmIndex end(machine.sms()); end != SmIndex(); end = end - 1) {
      if (machine.fits(end - 1, block)) return end - 1;
    }
    return no_sm;
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_last_fit(const PolicySettings& /*settings*/) {
  return std::make_unique<LastFit>();
}

}  // namespace demarc::sim
