// Round robin as published: the only candidate is the SM after the last one used. The pointer moves
// on success only, so a full SM stops dispatch although others are free. By the rules of 2020,
// passing the last SM also ended the tick, and the pointer began anew only if the machine as a
// whole had room.
#include "demarc/sim/dispatch/machine.hpp"
#include "demarc/sim/dispatch/policies.hpp"

namespace demarc::sim {
namespace {

class RoundRobin final : public DispatchPolicy {
 public:
  explicit RoundRobin(bool wrap_ends_tick) : wrap_ends_tick_(wrap_ends_tick) {}

  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override {
    if (!may_go_on(machine, block) || !machine.fits(next_, block)) return no_sm;
    const SmIndex sm = next_;
    ++next_;
    return sm;
  }

  std::size_t choose_many(Machine& machine, BlockRequest block, std::span<SmIndex> out) override {
    std::size_t count = 0;
    while (count < out.size() && may_go_on(machine, block)) {
      const std::uint32_t placed = machine.place_run(next_, block, out.subspan(count));
      count += placed;
      next_ = next_ + placed;
      if (next_ < SmIndex(machine.sms())) break;
    }
    return count;
  }

  void begin_tick() override { wrapped_ = false; }

 private:
  bool may_go_on(const Occupancy& machine, const BlockRequest& block) {
    if (wrapped_ || next_ < SmIndex(machine.sms())) return !wrapped_;
    wrapped_ = wrap_ends_tick_;
    if (!wrapped_ || machine.total(0) + block.sm[0] <= machine.capacity(0)) next_ = SmIndex();
    return !wrapped_;
  }

  bool wrap_ends_tick_;
  bool wrapped_ = false;
  SmIndex next_;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_rr(const PolicySettings& settings) {
  return std::make_unique<RoundRobin>(settings.wrap_ends_tick);
}

}  // namespace demarc::sim
