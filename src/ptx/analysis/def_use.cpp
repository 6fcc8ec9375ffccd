// Finds which instructions write the value that an instruction reads.
#include "demarc/ptx/def_use.hpp"

#include <algorithm>

namespace demarc::ptx {
namespace {

using Visitor = void (*)(void*, std::uint32_t);

void visit_registers(const Body& body, const Operand& operand, Visitor f, void* context) {
  if (operand.kind == OperandKind::reg) {
    f(context, operand.index);
  } else if (operand.kind == OperandKind::address || operand.kind == OperandKind::symbol) {
    if (operand.base == Base::reg) f(context, operand.index);
  } else if (operand.has_children()) {
    for (const Operand& child : body.children(operand)) visit_registers(body, child, f, context);
  }
}

// An operand that is written names registers directly, in vectors or in pairs; an address in its
// place (mbarrier.arrive without a result) is read.
bool is_destination(const Operand& operand) {
  return operand.kind == OperandKind::reg || operand.kind == OperandKind::vector ||
         operand.kind == OperandKind::pair || operand.kind == OperandKind::list;
}

std::size_t written_operands(const Body& body, const Instruction& instruction) {
  const auto operands = body.operands_of(instruction);
  if (instruction.opcode == Opcode::call) {
    // call (results), f, ...: the list stands first.
    return !operands.empty() && operands[0].kind == OperandKind::list ? 1 : 0;
  }
  return std::min<std::size_t>(info(instruction.opcode).written, operands.size());
}

// Matrix instructions that accumulate in place.
bool reads_destination(const Instruction& instruction) {
  return instruction.opcode == Opcode::wgmma_mma_async ||
         instruction.opcode == Opcode::wgmma_mma_async_sp;
}

// Counting sort of (register, instruction) pairs that arrive in order of instructions.
void group_by_register(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs,
                       std::uint32_t register_count, std::vector<std::uint32_t>& start,
                       std::vector<std::uint32_t>& list) {
  start.assign(static_cast<std::size_t>(register_count) + 1, 0);
  for (const auto& [reg, instruction] : pairs) ++start[reg + 1];
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  list.resize(pairs.size());
  std::vector<std::uint32_t> next(start.begin(), start.end() - 1);
  for (const auto& [reg, instruction] : pairs) list[next[reg]++] = instruction;
}

}  // namespace

void for_each_written(const Body& body, const Instruction& instruction, Visitor f, void* context) {
  const std::size_t written = written_operands(body, instruction);
  const auto operands = body.operands_of(instruction);
  for (std::size_t i = 0; i < written; ++i) {
    if (is_destination(operands[i])) visit_registers(body, operands[i], f, context);
  }
}

void for_each_read(const Body& body, const Instruction& instruction, Visitor f, void* context) {
  if (instruction.predicate != no_index) f(context, instruction.predicate);
  const std::size_t written =
      reads_destination(instruction) ? 0 : written_operands(body, instruction);
  const auto operands = body.operands_of(instruction);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i < written && is_destination(operands[i])) continue;
    visit_registers(body, operands[i], f, context);
  }
}

DefUse::DefUse(const Body& body, const Cfg& cfg) : body_(&body), cfg_(&cfg) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> writes;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> reads;
  writes.reserve(body.instructions.size());
  reads.reserve(body.instructions.size() * 2);
  const auto add = [](auto& pairs, std::uint32_t reg, std::uint32_t instruction) {
    // One entry for a register that an instruction names twice.
    if (pairs.empty() || pairs.back() != std::pair{reg, instruction}) {
      pairs.emplace_back(reg, instruction);
    }
  };
  for (std::uint32_t i = 0; i < body.instructions.size(); ++i) {
    const Instruction& instruction = body.instructions[i];
    for_each_written(body, instruction, [&](std::uint32_t reg) { add(writes, reg, i); });
    for_each_read(body, instruction, [&](std::uint32_t reg) { add(reads, reg, i); });
  }
  group_by_register(writes, body.register_count, definition_start_, definitions_);
  group_by_register(reads, body.register_count, use_start_, uses_);
}

std::span<const std::uint32_t> DefUse::definitions(std::uint32_t reg) const {
  return std::span(definitions_)
      .subspan(definition_start_[reg], definition_start_[reg + 1] - definition_start_[reg]);
}

std::span<const std::uint32_t> DefUse::uses(std::uint32_t reg) const {
  return std::span(uses_).subspan(use_start_[reg], use_start_[reg + 1] - use_start_[reg]);
}

// Walks the graph backwards from the instruction to the nearest definitions.
DefUse::Reaching DefUse::reaching(std::uint32_t reg, std::uint32_t instruction) const {
  Reaching result;
  const auto all = definitions(reg);
  std::vector<bool> seen(cfg_->blocks().size(), false);
  struct Place {
    std::uint32_t block;
    std::uint32_t before;  // instructions below this one
  };
  std::vector<Place> work = {{cfg_->block_of(instruction), instruction}};
  while (!work.empty()) {
    const Place place = work.back();
    work.pop_back();
    const BasicBlock& block = cfg_->blocks()[place.block];
    bool ended = false;
    auto at = std::lower_bound(all.begin(), all.end(), place.before);
    while (at != all.begin() && !ended && *std::prev(at) >= block.first) {
      --at;
      result.definitions.push_back(*at);
      ended = body_->instructions[*at].predicate == no_index;
    }
    if (ended) continue;
    if (place.block == cfg_->entry()) result.may_be_unwritten = true;
    for (const std::uint32_t previous : block.predecessors) {
      if (seen[previous] || !cfg_->reachable(previous)) continue;
      seen[previous] = true;
      const BasicBlock& before = cfg_->blocks()[previous];
      work.push_back({previous, before.first + before.count});
    }
  }
  std::sort(result.definitions.begin(), result.definitions.end());
  result.definitions.erase(std::unique(result.definitions.begin(), result.definitions.end()),
                           result.definitions.end());
  return result;
}

}  // namespace demarc::ptx
