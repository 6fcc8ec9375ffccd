// Finds the registers and branches that may differ between the threads of a warp or block.
#include "analysis/divergence.hpp"

#include <algorithm>

namespace demarc::ptx {
namespace {

Uniformity of_special(SpecialRegister which) {
  switch (which) {
    case SpecialRegister::ntid:
    case SpecialRegister::nctaid:
    case SpecialRegister::nclusterid:
    case SpecialRegister::cluster_nctaid:
    case SpecialRegister::cluster_nctarank:
    case SpecialRegister::is_explicit_cluster:
    case SpecialRegister::nsmid:
    case SpecialRegister::gridid:
    case SpecialRegister::total_smem_size:
    case SpecialRegister::aggr_smem_size:
    case SpecialRegister::dynamic_smem_size:
      return Uniformity::grid;
    case SpecialRegister::ctaid:
    case SpecialRegister::clusterid:
    case SpecialRegister::cluster_ctaid:
    case SpecialRegister::cluster_ctarank:
    case SpecialRegister::smid:
      return Uniformity::block;
    default:
      return Uniformity::thread;
  }
}

class DivergenceFinder {
 public:
  DivergenceFinder(const Module& module, const Body& body, const Cfg& cfg, const DefUse& def_use)
      : module_(module), body_(body), cfg_(cfg), def_use_(def_use) {
    result_.registers.assign(body.register_count, Uniformity::grid);
    result_.divergent_branch.assign(body.instructions.size(), false);
    control_.assign(cfg.blocks().size(), Uniformity::grid);
  }

  // Values only ever get less uniform, so repeating ends.
  Divergence run() {
    for (changed_ = true; changed_;) {
      changed_ = false;
      for (const std::uint32_t block : cfg_.reverse_post_order()) {
        const BasicBlock& here = cfg_.blocks()[block];
        for (std::uint32_t i = here.first; i < here.first + here.count; ++i) visit(block, i);
        if (here.successors.size() > 1) spread_control(block);
      }
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] Uniformity of_operand(const Operand& operand) const {
    switch (operand.kind) {
      case OperandKind::reg:
        return result_.registers[operand.index];
      case OperandKind::special:
        return of_special(static_cast<SpecialRegister>(operand.index));
      case OperandKind::address:
      case OperandKind::symbol:
        return operand.base == Base::reg ? result_.registers[operand.index] : Uniformity::grid;
      case OperandKind::verbatim:
        return Uniformity::thread;
      default:
        break;
    }
    Uniformity least = Uniformity::grid;
    if (operand.has_children()) {
      for (const Operand& child : body_.children(operand)) {
        least = std::min(least, of_operand(child));
      }
    }
    return least;
  }

  // What an instruction makes of its operands.
  [[nodiscard]] Uniformity of_result(const Instruction& instruction) const {
    Uniformity least = Uniformity::grid;
    const OpcodeInfo& row = info(instruction.opcode);
    switch (row.group) {
      case OpcodeGroup::arithmetic:
      case OpcodeGroup::compare:
      case OpcodeGroup::logic:
      case OpcodeGroup::move:
      case OpcodeGroup::convert:
      case OpcodeGroup::video:
        break;
      case OpcodeGroup::load: {
        const StateSpace space = module_.mnemonic(instruction).space;
        if (space != StateSpace::param && space != StateSpace::constant) return Uniformity::thread;
        break;
      }
      // What a barrier gives is the same for all threads that it joins.
      case OpcodeGroup::barrier:
        return instruction.operand_count == row.fewest_operands ? Uniformity::block
                                                                : Uniformity::thread;
      default:
        return Uniformity::thread;
    }
    if (instruction.predicate != no_index) least = result_.registers[instruction.predicate];
    const auto operands = body_.operands_of(instruction);
    for (std::size_t i = row.written; i < operands.size(); ++i) {
      const Operand& operand = operands[i];
      // Parameters of a call in progress hold what was stored to them.
      if (operand.kind == OperandKind::address && operand.base == Base::variable &&
          row.group == OpcodeGroup::load) {
        return Uniformity::thread;
      }
      least = std::min(least, of_operand(operand));
    }
    return least;
  }

  void lower(std::uint32_t reg, Uniformity to) {
    if (to >= result_.registers[reg]) return;
    result_.registers[reg] = to;
    changed_ = true;
  }

  void visit(std::uint32_t block, std::uint32_t index) {
    const Instruction& instruction = body_.instructions[index];
    const Uniformity value = of_result(instruction);
    for_each_written(body_, instruction, [&](std::uint32_t reg) {
      // Where threads come from different definitions, the way they came counts too.
      const bool merges = def_use_.definitions(reg).size() > 1;
      lower(reg, merges ? std::min(value, control_[block]) : value);
    });
  }

  // The blocks between a branch and its immediate post-dominator run for those that took that way.
  void spread_control(std::uint32_t block) {
    const BasicBlock& here = cfg_.blocks()[block];
    const std::uint32_t branch = here.first + here.count - 1;
    const Instruction& instruction = body_.instructions[branch];
    Uniformity condition = instruction.predicate != no_index
                               ? result_.registers[instruction.predicate]
                               : Uniformity::grid;
    for (const Operand& operand : body_.operands_of(instruction)) {
      condition = std::min(condition, of_operand(operand));
    }
    if (condition == Uniformity::thread) result_.divergent_branch[branch] = true;
    if (condition == Uniformity::grid) return;
    const std::uint32_t stop = cfg_.immediate_post_dominator(block);
    std::vector<bool> seen(cfg_.blocks().size(), false);
    std::vector<std::uint32_t> work = here.successors;
    while (!work.empty()) {
      const std::uint32_t next = work.back();
      work.pop_back();
      if (next == stop || seen[next]) continue;
      seen[next] = true;
      if (condition < control_[next]) {
        control_[next] = condition;
        changed_ = true;
      }
      const auto& successors = cfg_.blocks()[next].successors;
      work.insert(work.end(), successors.begin(), successors.end());
    }
  }

  const Module& module_;
  const Body& body_;
  const Cfg& cfg_;
  const DefUse& def_use_;
  Divergence result_;
  std::vector<Uniformity> control_;  // by block: who decides whether it runs
  bool changed_ = false;
};

}  // namespace

Divergence find_divergence(const Module& module, const Body& body, const Cfg& cfg,
                           const DefUse& def_use) {
  return DivergenceFinder(module, body, cfg, def_use).run();
}

}  // namespace demarc::ptx
