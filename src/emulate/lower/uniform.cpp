// Finds the registers that can live in a uniform slot.
#include "lower/uniform.hpp"

#include <algorithm>

#include "demarc/ptx/def_use.hpp"
#include "lower/liveness.hpp"

namespace demarc::emulate {

using ptx::Opcode;
using ptx::OperandKind;

namespace {

// Instructions whose result is a function of their operands alone and that can write a uniform
// slot.
bool uniform_opcode(const ptx::Module& module, const ptx::Function& function,
                    const ptx::Instruction& instruction) {
  const ptx::Mnemonic& words = module.mnemonic(instruction);
  if (!words.understood) return false;
  switch (instruction.opcode) {
    case Opcode::add:
    case Opcode::sub:
    case Opcode::mul:
    case Opcode::mad:
    case Opcode::fma:
    case Opcode::div:
    case Opcode::rem:
    case Opcode::min:
    case Opcode::max:
    case Opcode::abs:
    case Opcode::neg:
    case Opcode::and_:
    case Opcode::or_:
    case Opcode::xor_:
    case Opcode::not_:
    case Opcode::shl:
    case Opcode::shr:
    case Opcode::cvt:
    case Opcode::cvta:
      return !words.has(ptx::Modifier::cc);
    case Opcode::mov: {
      const auto operands = function.body.operands_of(instruction);
      return operands[0].kind == OperandKind::reg && operands[1].kind != OperandKind::vector &&
             words.type() != ptx::Type::b128 && words.vector_width == 1;
    }
    case Opcode::setp:
      return true;
    case Opcode::ld: {
      if (words.vector_width > 1 || ptx::byte_size(words.type()) > 8) return false;
      const ptx::Operand& address = function.body.operands_of(instruction)[1];
      const bool parameter = words.space == ptx::StateSpace::param && function.is_entry &&
                             address.base == ptx::Base::parameter;
      return parameter || words.space == ptx::StateSpace::constant;
    }
    default:
      return false;
  }
}

bool uniform_special(ptx::SpecialRegister which) {
  using ptx::SpecialRegister;
  switch (which) {
    case SpecialRegister::ctaid:
    case SpecialRegister::ntid:
    case SpecialRegister::nctaid:
    case SpecialRegister::clusterid:
    case SpecialRegister::nclusterid:
    case SpecialRegister::cluster_ctaid:
    case SpecialRegister::cluster_nctaid:
    case SpecialRegister::cluster_ctarank:
    case SpecialRegister::cluster_nctarank:
    case SpecialRegister::nwarpid:
    case SpecialRegister::nsmid:
    case SpecialRegister::gridid:
    case SpecialRegister::dynamic_smem_size:
    case SpecialRegister::total_smem_size:
    case SpecialRegister::aggr_smem_size:
    case SpecialRegister::current_graph_exec:
    case SpecialRegister::envreg1:
    case SpecialRegister::envreg2:
    case SpecialRegister::reserved_smem_offset_begin:
    case SpecialRegister::reserved_smem_offset_end:
    case SpecialRegister::reserved_smem_offset_cap:
    case SpecialRegister::reserved_smem_offset_0:
    case SpecialRegister::reserved_smem_offset_1:
      return true;
    default:
      return false;
  }
}

// What the lanes that took one side of a branch execute before they meet the others.
struct Influence {
  std::uint32_t block = 0;
  std::vector<bool> region;  // by basic block
  bool one_sided = false;    // the other side leads straight to the meeting point
  bool repeats = false;  // the branch lies in its own region: lanes may stay for different times
};

class Analysis {
 public:
  Analysis(const ptx::Module& module, const ptx::Function& function, const ptx::Cfg& cfg)
      : module_(module), function_(function), body_(function.body), cfg_(cfg) {}

  UniformRegisters run();

 private:
  void collect();
  Influence influence_of(std::uint32_t block) const;
  bool sources_uniform(const ptx::Instruction& instruction) const;
  bool place_allows(std::uint32_t reg) const;
  bool is_result(std::uint32_t reg) const;

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ptx::Body& body_;
  const ptx::Cfg& cfg_;
  std::vector<std::vector<std::uint32_t>> definitions_;  // by register: instructions
  std::vector<std::vector<std::uint32_t>> uses_;  // by register: instructions, guards included
  std::vector<bool> uniform_;
  std::vector<Influence> divergent_;
};

void Analysis::collect() {
  definitions_.resize(body_.register_count);
  uses_.resize(body_.register_count);
  for (std::uint32_t i = 0; i < body_.instructions.size(); ++i) {
    const ptx::Instruction& instruction = body_.instructions[i];
    if (!cfg_.reachable(cfg_.block_of(i))) continue;
    ptx::for_each_written(body_, instruction,
                          [&](std::uint32_t reg) { definitions_[reg].push_back(i); });
    ptx::for_each_read(body_, instruction, [&](std::uint32_t reg) { uses_[reg].push_back(i); });
  }
}

Influence Analysis::influence_of(std::uint32_t block) const {
  Influence out;
  out.block = block;
  out.region.assign(cfg_.blocks().size(), false);
  const std::uint32_t meeting = cfg_.immediate_post_dominator(block);
  std::vector<std::uint32_t> work;
  for (const std::uint32_t successor : cfg_.blocks()[block].successors) {
    if (successor == meeting) {
      out.one_sided = true;
    } else if (!out.region[successor]) {
      out.region[successor] = true;
      work.push_back(successor);
    }
  }
  if (cfg_.blocks()[block].successors.size() > 2) out.one_sided = false;
  while (!work.empty()) {
    const std::uint32_t at = work.back();
    work.pop_back();
    for (const std::uint32_t successor : cfg_.blocks()[at].successors) {
      if (successor == meeting || out.region[successor]) continue;
      out.region[successor] = true;
      work.push_back(successor);
    }
  }
  out.repeats = out.region[block];
  return out;
}

bool Analysis::sources_uniform(const ptx::Instruction& instruction) const {
  bool uniform = true;
  ptx::for_each_read(body_, instruction,
                     [&](std::uint32_t reg) { uniform = uniform && uniform_[reg]; });
  for (const ptx::Operand& operand : body_.operands_of(instruction)) {
    if (operand.kind == OperandKind::special)
      uniform = uniform && uniform_special(static_cast<ptx::SpecialRegister>(operand.index));
    // Local variables and parameters of functions are per thread.
    if (operand.kind == OperandKind::symbol && operand.base == ptx::Base::variable &&
        body_.variables[operand.index].space == ptx::StateSpace::param) {
      uniform = false;
    }
  }
  return uniform;
}

// Whether control flow lets all lanes that read `reg` see the last write. See the header.
bool Analysis::place_allows(std::uint32_t reg) const {
  const auto& definitions = definitions_[reg];
  for (const Influence& branch : divergent_) {
    bool any = false;
    for (const std::uint32_t definition : definitions) {
      any |= static_cast<bool>(branch.region[cfg_.block_of(definition)]);
    }
    if (!any) continue;
    if (branch.repeats) return false;
    if (definitions.size() == 1) {
      const std::uint32_t block = cfg_.block_of(definitions[0]);
      for (const std::uint32_t use : uses_[reg]) {
        if (!cfg_.dominates(block, cfg_.block_of(use))) return false;
        if (cfg_.block_of(use) == block && use < definitions[0]) return false;
      }
      continue;
    }
    if (!branch.one_sided) return false;
    const bool in_loop = cfg_.loop_of(branch.block) != ptx::no_index;
    for (const auto* list : {&uses_[reg], &definitions}) {
      for (const std::uint32_t at : *list) {
        const std::uint32_t block = cfg_.block_of(at);
        if (branch.region[block]) continue;
        if (in_loop || !cfg_.dominates(block, branch.block)) return false;
      }
    }
  }
  return true;
}

// A .reg result is read by every lane that returns, wherever it does.
bool Analysis::is_result(std::uint32_t reg) const {
  return std::any_of(
      function_.results.begin(), function_.results.end(), [&](const ptx::Variable& variable) {
        return variable.space == ptx::StateSpace::reg && body_.range_of(reg).name == variable.name;
      });
}

UniformRegisters Analysis::run() {
  collect();
  UniformRegisters out;
  out.zeroed = live_at_entry(body_, cfg_);
  uniform_.assign(body_.register_count, false);
  if (!cfg_.reducible()) {
    out.uniform = uniform_;
    return out;
  }
  std::vector<std::uint32_t> candidates;
  for (std::uint32_t reg = 0; reg < body_.register_count; ++reg) {
    if (definitions_[reg].empty() || out.zeroed[reg] || is_result(reg)) continue;
    bool possible = true;
    for (const std::uint32_t definition : definitions_[reg]) {
      const ptx::Instruction& instruction = body_.instructions[definition];
      possible = possible && instruction.predicate == ptx::no_index &&
                 uniform_opcode(module_, function_, instruction);
    }
    if (!possible) continue;
    uniform_[reg] = true;
    candidates.push_back(reg);
  }
  // Optimistic: take back until nothing changes. Branches become divergent as their predicates do.
  std::vector<bool> is_divergent(cfg_.blocks().size(), false);
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b) {
      const ptx::BasicBlock& block = cfg_.blocks()[b];
      if (is_divergent[b] || block.count == 0 || block.successors.size() < 2 || !cfg_.reachable(b))
        continue;
      const ptx::Instruction& last = body_.instructions[block.first + block.count - 1];
      bool uniform = last.predicate == ptx::no_index || uniform_[last.predicate];
      ptx::for_each_read(body_, last,
                         [&](std::uint32_t reg) { uniform = uniform && uniform_[reg]; });
      if (uniform) continue;
      is_divergent[b] = true;
      divergent_.push_back(influence_of(b));
      changed = true;
    }
    for (const std::uint32_t reg : candidates) {
      if (!uniform_[reg]) continue;
      bool keeps = place_allows(reg);
      for (const std::uint32_t definition : definitions_[reg]) {
        keeps = keeps && sources_uniform(body_.instructions[definition]);
      }
      if (keeps) continue;
      uniform_[reg] = false;
      changed = true;
    }
  }
  out.uniform = uniform_;
  return out;
}

}  // namespace

UniformRegisters find_uniform_registers(const ptx::Module& module, const ptx::Function& function,
                                        const ptx::Cfg& cfg) {
  return Analysis(module, function, cfg).run();
}

}  // namespace demarc::emulate
