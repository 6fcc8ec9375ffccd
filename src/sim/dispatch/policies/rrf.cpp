// Fills one SM, then the next, cyclically; the pointer keeps its place. By the rules of 2020,
// passing the last SM ended the tick.
#include "demarc/sim/dispatch/policies.hpp"

namespace demarc::sim {
namespace {

class FillingRoundRobin final : public DispatchPolicy {
 public:
  explicit FillingRoundRobin(bool wrap_ends_tick) : wrap_ends_tick_(wrap_ends_tick) {}

  SmIndex choose(const Occupancy& machine, const BlockRequest& block) override {
    if (wrapped_) return no_sm;
    for (std::uint32_t tried = 0; tried < machine.sms(); ++tried) {
      if (machine.fits(current_, block)) return current_;
      if (++current_ < SmIndex(machine.sms())) continue;
      current_ = SmIndex();
      wrapped_ = wrap_ends_tick_;
      if (wrapped_) return no_sm;
    }
    return no_sm;
  }

  void begin_tick() override { wrapped_ = false; }

 private:
  bool wrap_ends_tick_;
  bool wrapped_ = false;
  SmIndex current_;
};

}  // namespace

std::unique_ptr<DispatchPolicy> make_rrf(const PolicySettings& settings) {
  return std::make_unique<FillingRoundRobin>(settings.wrap_ends_tick);
}

}  // namespace demarc::sim
