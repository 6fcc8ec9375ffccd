// Control-flow graph of one function: basic blocks, dominators, post-dominators, natural loops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct BasicBlock {
  std::uint32_t first = 0;  // instructions first .. first+count-1 of the body
  std::uint32_t count = 0;
  // A block that ends in a conditional branch lists the branch target first, then what follows it.
  std::vector<std::uint32_t> successors;
  std::vector<std::uint32_t> predecessors;
};

// A natural loop. Loops with the same header are one.
struct Loop {
  std::uint32_t header = 0;            // block
  std::vector<std::uint32_t> blocks;   // ascending, header included
  std::vector<std::uint32_t> latches;  // blocks with an edge back to the header
  std::uint32_t parent = no_index;     // the innermost loop around it
  std::uint32_t depth = 1;
};

// Block 0 is the entry. The last block is the exit: it is empty, and every ret, exit, trap and the
// end of the text lead to it. A predicated ret or exit also leads to what follows it. A call is an
// ordinary instruction; a brx.idx leads to all targets of its list.
class Cfg {
 public:
  explicit Cfg(const Body& body);

  [[nodiscard]] std::span<const BasicBlock> blocks() const { return blocks_; }
  [[nodiscard]] std::uint32_t entry() const { return 0; }
  [[nodiscard]] std::uint32_t exit() const {
    return static_cast<std::uint32_t>(blocks_.size()) - 1;
  }
  [[nodiscard]] std::uint32_t block_of(std::uint32_t instruction) const {
    return block_of_[instruction];
  }

  // Blocks reachable from the entry, each after its dominators. If the graph is reducible, only
  // back edges point backwards in this order.
  [[nodiscard]] std::span<const std::uint32_t> reverse_post_order() const { return order_; }
  [[nodiscard]] bool reachable(std::uint32_t block) const {
    return block == 0 || idom_[block] != no_index;
  }

  // no_index for the entry and unreachable blocks.
  [[nodiscard]] std::uint32_t immediate_dominator(std::uint32_t block) const {
    return idom_[block];
  }
  // no_index for the exit, and for blocks from which the exit cannot be reached.
  [[nodiscard]] std::uint32_t immediate_post_dominator(std::uint32_t block) const {
    return ipdom_[block];
  }
  [[nodiscard]] bool dominates(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] bool post_dominates(std::uint32_t a, std::uint32_t b) const;

  // Outer loops stand before inner ones.
  [[nodiscard]] std::span<const Loop> loops() const { return loops_; }
  // The innermost loop around a block, no_index outside of loops.
  [[nodiscard]] std::uint32_t loop_of(std::uint32_t block) const { return loop_of_[block]; }
  // False when some cycle has two entries (then `loops` misses it).
  [[nodiscard]] bool reducible() const { return reducible_; }

 private:
  std::vector<BasicBlock> blocks_;
  std::vector<std::uint32_t> block_of_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> idom_;
  std::vector<std::uint32_t> ipdom_;
  std::vector<Loop> loops_;
  std::vector<std::uint32_t> loop_of_;
  bool reducible_ = true;
};

// Graphviz DOT of the graph, instructions in the boxes.
[[nodiscard]] std::string to_dot(const Module& module, const Function& function, const Cfg& cfg);

}  // namespace demarc::ptx
