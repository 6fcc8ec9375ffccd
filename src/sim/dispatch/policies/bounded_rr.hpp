// The single candidate of the published round robin under one more condition.
#pragma once

#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {

template <class Condition>
class BoundedRoundRobin final : public DispatchPolicy {
 public:
  std::uint32_t choose(const Machine& machine, const BlockRequest& block) override {
    if (!machine.fits(next_, block) || !Condition::holds(machine, next_, block)) return no_sm;
    const std::uint32_t sm = next_;
    next_ = next_ + 1 == machine.sms() ? 0 : next_ + 1;
    return sm;
  }

 private:
  std::uint32_t next_ = 0;
};

}  // namespace demarc::sim
