// Finds barriers, and collectives of a warp, that only some threads reach because the others have
// returned.
#include "rewrite/early_return.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include "analysis/divergence.hpp"
#include "demarc/ptx/cfg.hpp"
#include "demarc/ptx/def_use.hpp"

namespace demarc::ptx {
namespace {

// The blocks that are reached from `work` by blocks that `passes` lets through.
std::vector<bool> reached(const Cfg& cfg, std::vector<std::uint32_t> work,
                          const std::function<bool(std::uint32_t)>& passes) {
  std::vector<bool> seen(cfg.blocks().size(), false);
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    if (seen[block] || !passes(block)) continue;
    seen[block] = true;
    const auto& successors = cfg.blocks()[block].successors;
    work.insert(work.end(), successors.begin(), successors.end());
  }
  return seen;
}

// Branches that all threads of a warp take alike, though those of a block do not: whole warps are
// told apart by their numbers of threads. A kernel that reads %tid.y or %tid.z may have rows that
// end within a warp.
class WholeWarps {
 public:
  WholeWarps(const Module& module, const Body& body, const DefUse& def_use,
             const Divergence& divergence)
      : module_(module), body_(body), def_use_(def_use), divergence_(divergence) {}

  [[nodiscard]] bool decide(const Instruction& branch) const {
    const bool rows =
        std::any_of(body_.operands.begin(), body_.operands.end(), [](const Operand& one) {
          return one.kind == OperandKind::special && is_thread_index(one) &&
                 one.selector != Selector::x;
        });
    return !rows && branch.opcode != Opcode::brx_idx && branch.predicate != no_index &&
           is_same(branch.predicate, max_steps);
  }

 private:
  static constexpr int max_steps = 16;

  static bool is_thread_index(const Operand& operand) {
    return operand.kind == OperandKind::special &&
           static_cast<SpecialRegister>(operand.index) == SpecialRegister::tid;
  }

  // The only instruction that writes it, without a guard.
  [[nodiscard]] const Instruction* definition(std::uint32_t reg) const {
    const auto all = def_use_.definitions(reg);
    if (all.size() != 1 || body_.instructions[all[0]].predicate != no_index) return nullptr;
    return &body_.instructions[all[0]];
  }

  // %tid.x, moved or widened.
  [[nodiscard]] bool is_thread_number(const Operand& operand, int steps) const {
    if (is_thread_index(operand)) return operand.selector == Selector::x;
    if (operand.kind != OperandKind::reg || steps == 0) return false;
    const Instruction* const made = definition(operand.index);
    return made != nullptr && (made->opcode == Opcode::mov || made->opcode == Opcode::cvt) &&
           made->operand_count == 2 && is_thread_number(body_.operands_of(*made)[1], steps - 1);
  }

  [[nodiscard]] bool is_same(std::uint32_t reg, int steps) const {
    if (divergence_.registers[reg] != Uniformity::thread) return true;
    const Instruction* const made = steps > 0 ? definition(reg) : nullptr;
    if (made == nullptr) return false;
    const OpcodeGroup group = info(made->opcode).group;
    if (group != OpcodeGroup::arithmetic && group != OpcodeGroup::compare &&
        group != OpcodeGroup::logic && group != OpcodeGroup::move && group != OpcodeGroup::convert)
      return false;
    const auto operands = body_.operands_of(*made);
    if (operands.size() == 3 && operands[2].kind == OperandKind::immediate &&
        is_thread_number(operands[1], steps - 1) && cuts_at_warps(*made, operands[2].value))
      return true;
    return std::all_of(operands.begin() + info(made->opcode).written, operands.end(),
                       [&](const Operand& one) {
                         return one.kind == OperandKind::immediate ||
                                (one.kind == OperandKind::reg && is_same(one.index, steps - 1));
                       });
  }

  // Whether `made` gives the same of a thread's number and this constant for all of a warp.
  [[nodiscard]] bool cuts_at_warps(const Instruction& made, std::uint64_t constant) const {
    switch (made.opcode) {
      case Opcode::shr:
        return constant >= 5 && constant < 32;
      case Opcode::and_:
        return constant % 32 == 0;
      case Opcode::div:
        return constant != 0 && constant % 32 == 0;
      case Opcode::setp: {
        const Mnemonic& words = module_.mnemonic(made);
        const bool below = words.has(Modifier::lt) || words.has(Modifier::ge) ||
                           words.has(Modifier::lo) || words.has(Modifier::hs);
        const bool above = words.has(Modifier::gt) || words.has(Modifier::le) ||
                           words.has(Modifier::hi) || words.has(Modifier::ls);
        return (below && constant % 32 == 0) || (above && constant % 32 == 31);
      }
      default:
        return false;
    }
  }

  const Module& module_;
  const Body& body_;
  const DefUse& def_use_;
  const Divergence& divergence_;
};

}  // namespace

bool is_block_barrier(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::bar_sync:
    case Opcode::bar_cta_sync:
    case Opcode::barrier_sync:
    case Opcode::barrier_cta_sync:
      return instruction.operand_count == 1;
    case Opcode::bar_red:
    case Opcode::bar_cta_red:
    case Opcode::barrier_red:
    case Opcode::barrier_cta_red:
      return instruction.operand_count == 3;
    default:
      return false;
  }
}

bool is_warp_collective(const Module& module, const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::bar_warp_sync:
    case Opcode::elect:
    case Opcode::match:
    case Opcode::redux:
      return true;
    case Opcode::shfl:
    case Opcode::vote:
      return module.mnemonic(instruction).has(Modifier::sync);
    default:
      return false;
  }
}

namespace {

std::optional<std::uint32_t> first_after_return(
    const Module& module, const Function& kernel,
    const std::function<bool(const Instruction&)>& counts, bool of_warps) {
  const Body& body = kernel.body;
  const Cfg cfg(body);
  std::vector<std::uint32_t> barrier_of(cfg.blocks().size(), no_index);  // the first of each block
  for (std::uint32_t i = 0; i < body.instructions.size(); ++i) {
    const Instruction& instruction = body.instructions[i];
    std::uint32_t& barrier = barrier_of[cfg.block_of(i)];
    if (counts(instruction) && barrier == no_index) barrier = i;
  }
  if (std::all_of(barrier_of.begin(), barrier_of.end(),
                  [](std::uint32_t barrier) { return barrier == no_index; })) {
    return std::nullopt;
  }
  const DefUse def_use(body, cfg);
  const Divergence divergence = find_divergence(module, body, cfg, def_use);
  const WholeWarps whole_warps(module, body, def_use, divergence);
  for (std::uint32_t block = 0; block < cfg.blocks().size(); ++block) {
    const BasicBlock& here = cfg.blocks()[block];
    if (here.count == 0 || !divergence.divergent_branch[here.first + here.count - 1]) continue;
    const Instruction& branch = body.instructions[here.first + here.count - 1];
    if (of_warps && whole_warps.decide(branch)) continue;
    const auto way_out =
        reached(cfg, here.successors, [&](std::uint32_t at) { return barrier_of[at] == no_index; });
    const std::uint32_t join = cfg.immediate_post_dominator(block);
    // Barriers count those that come; a collective names them, whatever they did before they left.
    if (!way_out[cfg.exit()] && !(of_warps && join == cfg.exit())) continue;
    const auto apart = reached(cfg, here.successors, [&](std::uint32_t at) { return at != join; });
    for (std::uint32_t at = 0; at < apart.size(); ++at) {
      if (apart[at] && barrier_of[at] != no_index) return barrier_of[at];
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> barrier_after_return(const Module& module, const Function& kernel,
                                                  bool calls_have_barriers) {
  return first_after_return(
      module, kernel,
      [&](const Instruction& one) {
        return is_block_barrier(one) || (calls_have_barriers && one.opcode == Opcode::call);
      },
      false);
}

std::optional<std::uint32_t> collective_after_return(const Module& module, const Function& kernel,
                                                     bool calls_have_collectives) {
  return first_after_return(
      module, kernel,
      [&](const Instruction& one) {
        return is_warp_collective(module, one) ||
               (calls_have_collectives && one.opcode == Opcode::call);
      },
      true);
}

}  // namespace demarc::ptx
