// Room on the SMs for blocks of kernels, and the load balancer that spends it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "demarc/sim/pipeline/pipeline.hpp"

namespace demarc::sim {

// What one block takes of an SM; threads in whole warps.
struct BlockNeed {
  std::uint32_t threads = 0;
  std::uint32_t registers = 0;
  std::uint32_t shared = 0;
};

[[nodiscard]] BlockNeed block_need(const PipelineKernel& kernel, const gpu::SmLimits& limits);

class SmRoom {
 public:
  explicit SmRoom(const PipelineSpec& spec);

  [[nodiscard]] std::uint32_t tpcs() const { return static_cast<std::uint32_t>(tpcs_.size()); }

  // The SM of TPC `tpc` with the fewest threads in use on which the block fits, or no_sm.
  [[nodiscard]] SmIndex best_sm(TpcIndex tpc, const BlockNeed& need) const {
    SmIndex best = no_sm;
    for (const SmIndex sm : tpcs_[tpc]) {
      if (!fits(sm, need)) continue;
      if (best == no_sm || use_[sm].threads < use_[best].threads) best = sm;
    }
    return best;
  }
  [[nodiscard]] std::uint32_t tpc_threads(TpcIndex tpc) const { return tpc_threads_[tpc]; }
  [[nodiscard]] TpcIndex tpc_of(SmIndex sm) const { return tpc_of_[sm]; }

  void take(SmIndex sm, const BlockNeed& need) { change(sm, need, 1U); }
  void give(SmIndex sm, const BlockNeed& need, std::uint32_t blocks) {
    change(sm, need, 0U - blocks);
  }

 private:
  struct Use {
    std::uint32_t blocks = 0, threads = 0, registers = 0, shared = 0;
  };
  [[nodiscard]] bool fits(SmIndex sm, const BlockNeed& need) const {
    const Use& use = use_[sm];
    return use.blocks < limits_.blocks && use.threads + need.threads <= limits_.threads &&
           use.registers + need.registers <= limits_.registers &&
           use.shared + need.shared <= shared_;
  }
  void change(SmIndex sm, const BlockNeed& need, std::uint32_t blocks) {
    Use& use = use_[sm];
    use.blocks += blocks;
    use.threads += blocks * need.threads;
    use.registers += blocks * need.registers;
    use.shared += blocks * need.shared;
    tpc_threads_[tpc_of_[sm]] += blocks * need.threads;
  }

  gpu::SmLimits limits_;
  std::uint32_t shared_;
  PerIndex<TpcIndex, std::vector<SmIndex>> tpcs_;
  PerIndex<TpcIndex, std::uint32_t> tpc_threads_;
  PerIndex<SmIndex, TpcIndex> tpc_of_;
  PerIndex<SmIndex, Use> use_;
};

}  // namespace demarc::sim
