#include "demarc/sim/dispatch_policy.hpp"

namespace demarc::sim {

Machine::Machine(SmSpec spec)
    : spec_(std::move(spec)),
      resources_(spec_.max.size()),
      used_(std::size_t{spec_.n_sms} * resources_),
      total_(resources_) {}

bool Machine::full() const {
  for (std::size_t r = 0; r < spec_.n_sched; ++r) {
    if (total_[r] >= capacity(r)) return true;
  }
  return false;
}

std::size_t DispatchPolicy::choose_many(Machine& machine, BlockRequest block,
                                        std::span<std::uint32_t> out) {
  std::size_t count = 0;
  while (count < out.size()) {
    const std::uint32_t sm = choose(machine, block);
    if (sm == no_sm) break;
    machine.place(sm, block);
    out[count++] = sm;
    ++block.block;
  }
  return count;
}

}  // namespace demarc::sim
