// Places blocks one by one as a policy chooses.
#include "demarc/sim/dispatch/policy.hpp"

#include "demarc/sim/dispatch/machine.hpp"

namespace demarc::sim {

std::size_t DispatchPolicy::choose_many(Machine& machine, BlockRequest block,
                                        std::span<SmIndex> out) {
  std::size_t count = 0;
  while (count < out.size()) {
    const SmIndex sm = choose(machine, block);
    if (sm == no_sm) break;
    machine.place(sm, block);
    out[count++] = sm;
    ++block.block;
  }
  return count;
}

}  // namespace demarc::sim
