// A thread-block dispatch policy picks the SM for the next thread block. The same policies drive
// the SimTBS model and any other machine that keeps its occupancy in a Machine.
// docs/first-change.md shows how to add one.
#pragma once

#include <memory>

#include "demarc/sim/dispatch/occupancy.hpp"

namespace demarc::sim {

class Machine;          // machine.hpp; an occupancy that blocks are placed on
struct PolicySettings;  // policies.hpp

// The contract: choose() looks and does not place. It returns no_sm if the block must wait; that
// ends dispatch for this tick. Asked again on an unchanged machine, it returns no_sm again. It may
// keep state (a rotation pointer). The caller places the block at once on the SM that it returned.
// Deterministic: ties go to the lowest SM number unless the policy's rule says otherwise.
class DispatchPolicy {
 public:
  DispatchPolicy() = default;
  DispatchPolicy(const DispatchPolicy&) = delete;
  DispatchPolicy& operator=(const DispatchPolicy&) = delete;
  virtual ~DispatchPolicy() = default;

  [[nodiscard]] virtual SmIndex choose(const Occupancy& machine, const BlockRequest& block) = 0;

  // Places up to out.size() equal blocks and writes where; fewer if one must wait. Override it only
  // for speed: the result must be that of choose() and place() in turn.
  [[nodiscard]] virtual std::size_t choose_many(Machine& machine, BlockRequest block,
                                                std::span<SmIndex> out);
  // The blocks of the kernel for which the last choose() or choose_many() found SMs, in turn. Each
  // block is given once. Empty: those asked for, in index order.
  [[nodiscard]] virtual std::span<const BlockNumber> given() const { return {}; }
  // Dispatch of another tick begins.
  virtual void begin_tick() {}
};

}  // namespace demarc::sim
