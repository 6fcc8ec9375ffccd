// Runs a SimTBS configuration under a policy. Results are those of the tick-by-tick rules, in IEEE
// single precision; memory does not grow with the number of thread blocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "demarc/base/result.hpp"
#include "demarc/sim/dispatch/block_sharing.hpp"
#include "demarc/sim/dispatch/occupancy.hpp"
#include "demarc/sim/dispatch/tb_config.hpp"

namespace demarc::sim {

// Is told what happens, in order. Every call is optional.
class TbObserver {
 public:
  TbObserver() = default;
  TbObserver(const TbObserver&) = delete;
  TbObserver& operator=(const TbObserver&) = delete;
  virtual ~TbObserver() = default;
  virtual void placed(TbTicks /*tick*/, SmIndex /*sm*/, KernelIndex /*kernel*/,
                      BlockNumber /*block*/) {}
  // Blocks of one group: same kernel, SM and tick of placement.
  virtual void finished(TbTicks /*tick*/, SmIndex /*sm*/, KernelIndex /*kernel*/,
                        TbTicks /*placed_tick*/, std::uint32_t /*blocks*/) {}
  // The `ticks` ticks from `tick` on ended with this occupancy.
  virtual void ended(TbTicks /*tick*/, TbTicks /*ticks*/, const Occupancy& /*machine*/) {}
};

struct TbOptions {
  TbModel model = TbModel::simtbs;
  std::string policy = "rr";
  std::optional<TbModel> policy_rules = {};  // whose rr and rrf; empty: the model's
  std::uint32_t blocks_per_group = 0;        // see PolicySettings
  // `locality`: what blocks share, by kernel type; under 0 what holds for every other type.
  std::map<std::uint32_t, BlockSharing> sharing = {};
  TbObserver* observer = nullptr;
};

struct KernelOutcome {
  static constexpr TbTicks never{~std::uint32_t{0}};
  TbTicks first_run = never;  // tick in which its first block was placed
  TbTicks end = never;        // tick in which its last block completed
};

struct TbRun {
  TbTicks ticks;  // the tick counter at the end
  PerKernel<KernelOutcome> kernels;
  std::uint64_t placed_blocks = 0;
  std::uint64_t finished_blocks = 0;
  // Sum over ticks of the units in use, after the completions of each tick and before them.
  std::vector<std::uint64_t> sm_use, sm_use_full;
  std::vector<std::uint64_t> memory_use, memory_use_full;
  // Number of blocks that went to the SM of the block placed before them, of the same kernel.
  std::uint64_t neighbours_together = 0;
  // The published program ends when a memory is exceeded. This is the use that the memory would
  // have come to.
  std::optional<std::uint32_t> out_of_memory;
};

// Errors name the line of the configuration: kernels out of order (the published program hangs), a
// block that can never be placed with no time limit (it hangs), a memory table that divides by zero
// (it crashes).
[[nodiscard]] Result<TbRun> simulate(const TbConfig& config, const TbOptions& options);

}  // namespace demarc::sim
