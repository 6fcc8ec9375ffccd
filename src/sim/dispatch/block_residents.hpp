// The thread blocks on the SMs by the rules of May 2020, where a block that ends makes those behind
// it in the same tick faster: each block has a state of its own, in the order of placement.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "demarc/sim/units.hpp"
#include "dispatch/unit_costs.hpp"

namespace demarc::sim {

class BlockResidents {
 public:
  explicit BlockResidents(std::uint32_t n_sms, bool /*ticks*/) : blocks_(n_sms) {}

  [[nodiscard]] bool empty() const { return count_ == 0; }
  // The kernel of some block on the lowest SM that has one. Only when not empty().
  [[nodiscard]] KernelIndex some_kernel() const;

  // As Residents::add.
  std::uint64_t add(std::span<const SmIndex> sms, KernelIndex kernel, TbTicks tick, float work);

  // What happened in a tick.
  struct Tick {
    bool any_done = false;         // a block ended
    bool any_moved = false;        // or the work of one became less
    bool divides_by_zero = false;  // a block ran while no memory was in use: nothing more was done
  };
  // Lets every block work for a tick: SMs in order, on each the blocks in theirs. used[sm]: units
  // in use; `memory`: in use; memory_of(kernel): what a block of it asks for. Tells
  // visitor.state(kernel, sm, 1, tick) of each block that has nothing left.
  template <class Visitor, class MemoryOf>
  Tick run(const UnitCosts& costs, const std::uint32_t* used, std::uint32_t memory,
           MemoryOf memory_of, Visitor& visitor);

 private:
  struct Block {
    KernelIndex kernel;
    float work;
    TbTicks placed_tick;
  };
  std::vector<std::vector<Block>> blocks_;  // by SM
  std::uint64_t count_ = 0;
};

template <class Visitor, class MemoryOf>
BlockResidents::Tick BlockResidents::run(const UnitCosts& costs, const std::uint32_t* used,
                                         std::uint32_t memory, MemoryOf memory_of,
                                         Visitor& visitor) {
  Tick tick;
  float memory_cost = costs.memory(memory);
  for (std::uint32_t sm = 0; sm < blocks_.size(); ++sm) {
    std::vector<Block>& blocks = blocks_[sm];
    if (blocks.empty()) continue;
    const float sm_cost = costs.sm(used[sm]);
    std::size_t kept = 0;
    for (Block block : blocks) {
      const std::uint32_t request = memory_of(block.kernel);
      if (memory == 0) {
        tick.divides_by_zero = true;
        return tick;
      }
      const float share = memory_cost * static_cast<float>(request) / static_cast<float>(memory);
      const float before = block.work;
      block.work -= 1.0F / (1.0F + (sm_cost + share));
      tick.any_moved = tick.any_moved || block.work != before;
      if (block.work > 0) {
        blocks[kept++] = block;
        continue;
      }
      tick.any_done = true;
      memory -= request;
      memory_cost = costs.memory(memory);
      visitor.state(block.kernel, SmIndex(sm), 1, block.placed_tick);
    }
    count_ -= blocks.size() - kept;
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(kept), blocks.end());
  }
  return tick;
}

}  // namespace demarc::sim
