// Builds the control-flow graph of a function and prints it as DOT.
#include "demarc/ptx/cfg.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/dominators.hpp"
#include "demarc/base/text.hpp"
#include "demarc/ptx/printer.hpp"

namespace demarc::ptx {
namespace {

// Where control may go after an instruction. Label indices, in the order of successors.
struct Leaving {
  bool ends_block = false;
  bool exits = false;  // to the exit block
  bool falls_through = true;
  std::vector<std::uint32_t> labels;
};

Leaving leaving(const Body& body, const Instruction& instruction) {
  Leaving result;
  const bool guarded = instruction.predicate != no_index;
  switch (info(instruction.opcode).group) {
    case OpcodeGroup::exit:
      result.ends_block = result.exits = true;
      result.falls_through = guarded;
      return result;
    case OpcodeGroup::branch:
      break;
    default:
      return result;
  }
  result.ends_block = true;
  result.falls_through = guarded;
  const auto operands = body.operands_of(instruction);
  for (const Operand& operand : operands) {
    if (operand.kind != OperandKind::symbol) continue;
    if (operand.base == Base::label) result.labels.push_back(operand.index);
    if (operand.base == Base::targets && operand.index < body.targets.size()) {
      for (const std::uint32_t label : body.targets[operand.index].targets) {
        if (label < body.labels.size()) result.labels.push_back(label);
      }
    }
  }
  // A branch whose target is not known (an error was reported) may go nowhere we can see.
  if (result.labels.empty()) result.exits = true;
  return result;
}

std::vector<bool> find_leaders(const Body& body) {
  const std::size_t count = body.instructions.size();
  std::vector<bool> leaders(count + 1, false);
  leaders[0] = leaders[count] = true;
  for (const Label& label : body.labels) leaders[label.instruction] = true;
  for (std::size_t i = 0; i < count; ++i) {
    if (leaving(body, body.instructions[i]).ends_block) leaders[i + 1] = true;
  }
  return leaders;
}

void add_edge(std::vector<BasicBlock>& blocks, std::uint32_t from, std::uint32_t to) {
  auto& successors = blocks[from].successors;
  if (std::find(successors.begin(), successors.end(), to) != successors.end()) return;
  successors.push_back(to);
  blocks[to].predecessors.push_back(from);
}

}  // namespace

Cfg::Cfg(const Body& body) {
  const auto count = static_cast<std::uint32_t>(body.instructions.size());
  const std::vector<bool> leaders = find_leaders(body);
  block_of_.resize(count + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (leaders[i]) blocks_.push_back({i, 0, {}, {}});
    ++blocks_.back().count;
    block_of_[i] = static_cast<std::uint32_t>(blocks_.size()) - 1;
  }
  if (blocks_.empty()) blocks_.push_back({0, 0, {}, {}});
  const auto exit_block = static_cast<std::uint32_t>(blocks_.size());
  blocks_.push_back({count, 0, {}, {}});
  block_of_[count] = exit_block;

  for (std::uint32_t block = 0; block < exit_block; ++block) {
    const BasicBlock& here = blocks_[block];
    if (here.count == 0) {
      add_edge(blocks_, block, exit_block);
      continue;
    }
    const Leaving out = leaving(body, body.instructions[here.first + here.count - 1]);
    for (const std::uint32_t label : out.labels) {
      add_edge(blocks_, block, block_of_[body.labels[label].instruction]);
    }
    if (out.exits) add_edge(blocks_, block, exit_block);
    if (out.falls_through) add_edge(blocks_, block, block + 1);
  }

  order_ = reverse_post_order_of(blocks_, 0, Direction::forward);
  idom_ = immediate_dominators(blocks_, 0, Direction::forward);
  ipdom_ = immediate_dominators(blocks_, exit_block, Direction::backward);
  LoopForest forest = find_loops(blocks_, order_, idom_);
  loops_ = std::move(forest.loops);
  loop_of_ = std::move(forest.loop_of);
  reducible_ = forest.reducible;
}

bool Cfg::dominates(std::uint32_t a, std::uint32_t b) const {
  while (b != a && b != no_index) b = idom_[b];
  return b == a;
}

bool Cfg::post_dominates(std::uint32_t a, std::uint32_t b) const {
  while (b != a && b != no_index) b = ipdom_[b];
  return b == a;
}

namespace {

std::string dot_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '{' || c == '}' || c == '|' || c == '<' || c == '>') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

}  // namespace

std::string to_dot(const Module& module, const Function& function, const Cfg& cfg) {
  const Body& body = function.body;
  std::vector<std::string> titles(cfg.blocks().size());
  for (const Label& label : body.labels) {
    std::string& title = titles[cfg.block_of(label.instruction)];
    title += dot_escaped(label.name) + ":\\l";
  }
  std::string out = fmt::format("digraph \"{}\" {{\n  node [shape=record, fontname=monospace];\n",
                                dot_escaped(function.name));
  for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
    const BasicBlock& block = cfg.blocks()[b];
    std::string text = titles[b];
    for (std::uint32_t i = block.first; i < block.first + block.count; ++i) {
      text += dot_escaped(print(module, function, body.instructions[i])) + "\\l";
    }
    if (b == cfg.exit()) text += "exit\\l";
    append(out, "  b{} [label=\"{{b{}|{}}}\"];\n", b, b, text);
  }
  for (std::uint32_t b = 0; b < cfg.blocks().size(); ++b) {
    const BasicBlock& block = cfg.blocks()[b];
    const bool conditional = block.count > 0 && block.successors.size() == 2 &&
                             body.instructions[block.first + block.count - 1].predicate != no_index;
    for (std::size_t i = 0; i < block.successors.size(); ++i) {
      append(out, "  b{} -> b{}{};\n", b, block.successors[i],
             conditional ? (i == 0 ? " [label=taken]" : " [label=\"not taken\"]") : "");
    }
  }
  return out + "}\n";
}

}  // namespace demarc::ptx
