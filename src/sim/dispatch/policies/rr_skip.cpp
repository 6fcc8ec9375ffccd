// Round robin that moves past SMs without room: what the literature calls round robin.
#include "demarc/sim/dispatch/policy.hpp"

namespace demarc::sim {
namespace {

class SkippingRoundRobin final : public DispatchPolicy {
 public:
  std::uint32_t choose(const Machine& machine, const BlockRequest& block) override {
    for (std::uint32_t tried = 0; tried < machine.sms(); ++tried) {
      std::uint32_t sm = next_ + tried;
      if (sm >= machine.sms()) sm -= machine.sms();
      if (!machine.fits(sm, block)) continue;
      next_ = sm + 1 == machine.sms() ? 0 : sm + 1;
      return sm;
    }
    return no_sm;
  }

  std::size_t choose_many(Machine& machine, BlockRequest block,
                          std::span<std::uint32_t> out) override {
    std::size_t count = 0;
    while (count < out.size()) {
      const std::uint32_t first = SkippingRoundRobin::choose(machine, block);
      if (first == no_sm) break;
      const std::uint32_t placed = machine.place_run(first, block, out.subspan(count));
      count += placed;
      next_ = first + placed == machine.sms() ? 0 : first + placed;
    }
    return count;
  }

 private:
  std::uint32_t next_ = 0;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_rr_skip(const PolicySettings& /*settings*/) {
  return std::make_unique<SkippingRoundRobin>();
}

}  // namespace demarc::sim
