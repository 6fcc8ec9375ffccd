// Which registers and branches may differ between the threads of a warp, and of a block.
#pragma once

#include <cstdint>
#include <vector>

#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/def_use.hpp"
#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

// Where a value is the same. Ordered: a value that depends on two has the smaller uniformity.
enum class Uniformity : std::uint8_t {
  thread,  // may differ between threads of a block: depends on %tid, %laneid, loads ...
  block,   // the same for all threads of a block: %ctaid
  grid     // the same for the whole grid: parameters, %ntid, %nctaid, immediates
};

struct Divergence {
  std::vector<Uniformity> registers;  // by register number
  std::vector<bool>
      divergent_branch;  // by instruction: a branch that threads of a block may take differently
};

// Loads give what their address is, when they read parameters or constant memory; else `thread`.
// Values merged under divergent control are `thread` (the blocks between a divergent branch and its
// immediate post-dominator).
[[nodiscard]] Divergence find_divergence(const Module& module, const Body& body, const Cfg& cfg,
                                         const DefUse& def_use);

}  // namespace demarc::ptx
