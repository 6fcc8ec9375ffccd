// Round robin that skips SMs without room. The literature calls this round robin.
#include "demarc/sim/dispatch/machine.hpp"

#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {
namespace {

class SkippingRoundRobin final : public DispatchPolicy {
 public:
  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override {
    const SmIndex end(machine.sms());
    for (std::uint32_t tried = 0; tried < machine.sms(); ++tried) {
      SmIndex sm = next_ + tried;
      if (sm >= end) sm = sm - machine.sms();
      if (!machine.fits(sm, block)) continue;
      next_ = sm + 1 == end ? SmIndex() : sm + 1;
      return sm;
    }
    return no_sm;
  }

  std::size_t choose_many(Machine& machine, BlockRequest block, std::span<SmIndex> out) override {
    std::size_t count = 0;
    while (count < out.size()) {
      const SmIndex first = SkippingRoundRobin::choose(machine, block);
      if (first == no_sm) break;
      const std::uint32_t placed = machine.place_run(first, block, out.subspan(count));
      count += placed;
      next_ = first + placed == SmIndex(machine.sms()) ? SmIndex() : first + placed;
    }
    return count;
  }

 private:
  SmIndex next_;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_rr_skip(const PolicySettings& /*settings*/) {
  return std::make_unique<SkippingRoundRobin>();
}

}  // namespace demarc::sim
