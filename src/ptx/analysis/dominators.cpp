// Computes dominators and natural loops of a control-flow graph.
#include "analysis/dominators.hpp"

#include <algorithm>

namespace demarc::ptx {
namespace {

const std::vector<std::uint32_t>& next_of(const BasicBlock& block, Direction direction) {
  return direction == Direction::forward ? block.successors : block.predecessors;
}
const std::vector<std::uint32_t>& previous_of(const BasicBlock& block, Direction direction) {
  return direction == Direction::forward ? block.predecessors : block.successors;
}

// The blocks of the loop with this header: all that reach a latch without passing the header.
void collect_loop(const std::vector<BasicBlock>& blocks, Loop& loop) {
  std::vector<bool> inside(blocks.size(), false);
  inside[loop.header] = true;
  loop.blocks = {loop.header};
  std::vector<std::uint32_t> work = loop.latches;
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    if (inside[block]) continue;
    inside[block] = true;
    loop.blocks.push_back(block);
    work.insert(work.end(), blocks[block].predecessors.begin(), blocks[block].predecessors.end());
  }
  std::sort(loop.blocks.begin(), loop.blocks.end());
}

}  // namespace

std::vector<std::uint32_t> reverse_post_order_of(const std::vector<BasicBlock>& blocks,
                                                 std::uint32_t root, Direction direction) {
  std::vector<std::uint32_t> order;
  std::vector<bool> seen(blocks.size(), false);
  struct Visit {
    std::uint32_t block;
    std::size_t next;
  };
  std::vector<Visit> stack = {{root, 0}};
  seen[root] = true;
  while (!stack.empty()) {
    Visit& top = stack.back();
    const auto& next = next_of(blocks[top.block], direction);
    if (top.next == next.size()) {
      order.push_back(top.block);
      stack.pop_back();
      continue;
    }
    const std::uint32_t block = next[top.next++];
    if (seen[block]) continue;
    seen[block] = true;
    stack.push_back({block, 0});
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::uint32_t> immediate_dominators(const std::vector<BasicBlock>& blocks,
                                                std::uint32_t root, Direction direction) {
  const std::vector<std::uint32_t> order = reverse_post_order_of(blocks, root, direction);
  std::vector<std::uint32_t> place(blocks.size(), no_index);
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<std::uint32_t> idom(blocks.size(), no_index);
  idom[root] = root;
  const auto common = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) {
      while (place[a] > place[b]) a = idom[a];
      while (place[b] > place[a]) b = idom[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t block : order) {
      if (block == root) continue;
      std::uint32_t best = no_index;
      for (const std::uint32_t previous : previous_of(blocks[block], direction)) {
        if (idom[previous] == no_index) continue;
        best = best == no_index ? previous : common(best, previous);
      }
      if (idom[block] != best) {
        idom[block] = best;
        changed = true;
      }
    }
  }
  idom[root] = no_index;
  return idom;
}

LoopForest find_loops(const std::vector<BasicBlock>& blocks,
                      const std::vector<std::uint32_t>& order,
                      const std::vector<std::uint32_t>& idom) {
  LoopForest forest;
  std::vector<std::uint32_t> place(blocks.size(), no_index);
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  const auto dominates = [&](std::uint32_t a, std::uint32_t b) {
    while (b != a && b != no_index) b = idom[b];
    return b == a;
  };
  for (const std::uint32_t header : order) {
    Loop loop;
    loop.header = header;
    for (const std::uint32_t previous : blocks[header].predecessors) {
      if (place[previous] == no_index || place[previous] < place[header]) continue;
      if (dominates(header, previous)) {
        loop.latches.push_back(previous);
      } else {
        forest.reducible = false;  // an edge back to a block that can be passed by
      }
    }
    if (loop.latches.empty()) continue;
    collect_loop(blocks, loop);
    forest.loops.push_back(std::move(loop));
  }
  // `order` visits headers outside in, so a later loop that holds a block is the inner one.
  forest.loop_of.assign(blocks.size(), no_index);
  for (std::uint32_t i = 0; i < forest.loops.size(); ++i) {
    Loop& loop = forest.loops[i];
    loop.parent = forest.loop_of[loop.header];
    loop.depth = loop.parent == no_index ? 1 : forest.loops[loop.parent].depth + 1;
    for (const std::uint32_t block : loop.blocks) forest.loop_of[block] = i;
  }
  return forest;
}

}  // namespace demarc::ptx
