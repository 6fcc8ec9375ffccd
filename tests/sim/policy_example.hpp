#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {
namespace {

// The highest-numbered SM with room.
class LastFit final : public DispatchPolicy {
 public:
  std::uint32_t choose(const Machine& machine, const BlockRequest& block) override {
    for (std::uint32_t sm = machine.sms(); sm-- > 0;) {
      if (machine.fits(sm, block)) return sm;
    }
    return no_sm;
  }
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_last_fit(const PolicySettings& /*settings*/) {
  return std::make_unique<LastFit>();
}

}  // namespace demarc::sim
