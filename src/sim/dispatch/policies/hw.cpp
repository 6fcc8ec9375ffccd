// Does what the hardware's load balancer does with the blocks of one kernel, as far as experiments
// show. GPCs take turns. Within a GPC the TPC with the most room gets the block, and within the TPC
// its emptier SM. SM numbers are in order of TPCs and GPCs: sms_per_tpc SMs per TPC, tpcs_per_gpc
// TPCs per GPC.
#include <algorithm>

#include "demarc/base/rounding.hpp"
#include "demarc/sim/dispatch/policies.hpp"
#include "dispatch/policies/fullest_share.hpp"

namespace demarc::sim {
namespace {

class Hardware final : public DispatchPolicy {
 public:
  Hardware(std::uint32_t sms_per_tpc, std::uint32_t tpcs_per_gpc)
      : sms_per_tpc_(std::max(sms_per_tpc, 1U)),
        sms_per_gpc_(sms_per_tpc_ * std::max(tpcs_per_gpc, 1U)) {}

  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override {
    const std::uint32_t gpcs = ceil_div(machine.sms(), sms_per_gpc_);
    for (std::uint32_t tried = 0; tried < gpcs; ++tried) {
      const std::uint32_t gpc = (next_gpc_ + tried) % gpcs;
      const SmIndex sm = emptiest(machine, block, SmIndex(gpc * sms_per_gpc_));
      if (sm == no_sm) continue;
      next_gpc_ = (gpc + 1) % gpcs;
      return sm;
    }
    return no_sm;
  }

 private:
  [[nodiscard]] SmIndex emptiest(const Occupancy& machine, const BlockRequest& block,
                                 SmIndex first) const {
    SmIndex best = no_sm;
    float best_tpc = 0;
    const SmIndex end = std::min(first + sms_per_gpc_, SmIndex(machine.sms()));
    for (SmIndex tpc = first; tpc < end; tpc = tpc + sms_per_tpc_) {
      SmIndex best_here = no_sm;
      float lowest = 0;
      float sum = 0;
      for (SmIndex sm = tpc; sm < std::min(tpc + sms_per_tpc_, end); ++sm) {
        const float share = fullest_share(machine, sm, block);
        sum += share;
        if (!machine.fits(sm, block)) continue;
        if (best_here == no_sm || share < lowest) {
          best_here = sm;
          lowest = share;
        }
      }
      if (best_here == no_sm || (best != no_sm && sum >= best_tpc)) continue;
      best = best_here;
      best_tpc = sum;
    }
    return best;
  }

  std::uint32_t sms_per_tpc_, sms_per_gpc_;
  std::uint32_t next_gpc_ = 0;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_hw(const PolicySettings& settings) {
  return std::make_unique<Hardware>(settings.sms_per_tpc, settings.tpcs_per_gpc);
}

}  // namespace demarc::sim
