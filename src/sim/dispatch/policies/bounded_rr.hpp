// The single candidate of the published round robin under one more condition.
#pragma once

#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {

template <class Condition>
class BoundedRoundRobin final : public DispatchPolicy {
 public:
  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override {
    if (!machine.fits(next_, block) || !Condition::holds(machine, next_, block)) return no_sm;
    const SmIndex sm = next_;
    if (++next_ == SmIndex(machine.sms())) next_ = SmIndex();
    return sm;
  }

 private:
  SmIndex next_;
};

}  // namespace demarc::sim
