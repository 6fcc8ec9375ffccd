// Dominators (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001) and natural loops.
#pragma once

#include <vector>

#include "demarc/ptx/cfg.hpp"

namespace demarc::ptx {

enum class Direction : std::uint8_t { forward, backward };

// Blocks reachable from `root` along edges (backward: against them).
[[nodiscard]] std::vector<std::uint32_t> reverse_post_order_of(
    const std::vector<BasicBlock>& blocks, std::uint32_t root, Direction direction);

// no_index for the root and for blocks that cannot be reached.
[[nodiscard]] std::vector<std::uint32_t> immediate_dominators(const std::vector<BasicBlock>& blocks,
                                                              std::uint32_t root,
                                                              Direction direction);

struct LoopForest {
  std::vector<Loop> loops;
  std::vector<std::uint32_t> loop_of;
  bool reducible = true;
};
[[nodiscard]] LoopForest find_loops(const std::vector<BasicBlock>& blocks,
                                    const std::vector<std::uint32_t>& order,
                                    const std::vector<std::uint32_t>& idom);

}  // namespace demarc::ptx
