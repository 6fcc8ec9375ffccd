// Finds the registers that a loop changes by a constant, and the test that ends the loop.
#include "analysis/induction.hpp"

#include <algorithm>

namespace demarc::ptx {
namespace {

constexpr int longest_chain = 32;

class InductionFinder {
 public:
  InductionFinder(const Module& module, const Body& body, const Cfg& cfg, const DefUse& def_use)
      : module_(module), body_(body), cfg_(cfg), def_use_(def_use) {}

  LoopFacts run() {
    for (std::uint32_t loop = 0; loop < cfg_.loops().size(); ++loop) {
      find_variables(loop);
      find_tests(loop);
    }
    return std::move(facts_);
  }

 private:
  [[nodiscard]] bool in_loop(std::uint32_t loop, std::uint32_t instruction) const {
    const auto& blocks = cfg_.loops()[loop].blocks;
    return std::binary_search(blocks.begin(), blocks.end(), cfg_.block_of(instruction));
  }

  // The only definition of `reg` within the loop, no_index when there are none or several.
  [[nodiscard]] std::uint32_t only_definition(std::uint32_t loop, std::uint32_t reg) const {
    std::uint32_t only = no_index;
    for (const std::uint32_t definition : def_use_.definitions(reg)) {
      if (!in_loop(loop, definition)) continue;
      if (only != no_index) return no_index;
      only = definition;
    }
    return only;
  }

  [[nodiscard]] bool is_invariant(std::uint32_t loop, std::uint32_t reg) const {
    const auto definitions = def_use_.definitions(reg);
    return std::none_of(definitions.begin(), definitions.end(),
                        [&](std::uint32_t definition) { return in_loop(loop, definition); });
  }

  // Runs exactly once on every trip: unguarded, in no inner loop, on the way to every latch.
  [[nodiscard]] bool runs_every_trip(std::uint32_t loop, std::uint32_t instruction) const {
    const std::uint32_t block = cfg_.block_of(instruction);
    if (cfg_.loop_of(block) != loop || body_.instructions[instruction].predicate != no_index) {
      return false;
    }
    const auto& latches = cfg_.loops()[loop].latches;
    return std::all_of(latches.begin(), latches.end(),
                       [&](std::uint32_t latch) { return cfg_.dominates(block, latch); });
  }

  // Adds what one instruction of the chain does to the step; false when it is no such step.
  bool add_step(InductionVariable& variable, std::uint32_t instruction, std::uint32_t& reg) const {
    const Instruction& step = body_.instructions[instruction];
    const auto operands = body_.operands_of(step);
    const auto is_plain_reg = [&](const Operand& operand) {
      return operand.kind == OperandKind::reg && operand.selector == Selector::none;
    };
    if (step.opcode == Opcode::mov && is_plain_reg(operands[1])) {
      reg = operands[1].index;
      return true;
    }
    if (step.opcode != Opcode::add && step.opcode != Opcode::sub) return false;
    const Mnemonic& mnemonic = module_.mnemonic(step);
    const TypeKind kind = info(mnemonic.type()).kind;
    if ((kind != TypeKind::signed_ && kind != TypeKind::unsigned_) ||
        mnemonic.modifiers.size() != 1) {
      return false;
    }
    const bool subtracts = step.opcode == Opcode::sub;
    // Of an addition, the side that the loop changes is the variable.
    const auto changes = [&](const Operand& operand) {
      return is_plain_reg(operand) && !is_invariant(variable.loop, operand.index);
    };
    const std::size_t from = subtracts || changes(operands[1]) ? 1 : 2;
    if (!changes(operands[from])) return false;
    const Operand* by = &operands[3 - from];
    variable.update = instruction;
    reg = operands[from].index;
    if (by->kind == OperandKind::immediate) {
      const std::int64_t amount = by->offset();
      variable.step =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(variable.step) +
                                    static_cast<std::uint64_t>(subtracts ? -amount : amount));
      return true;
    }
    if (!is_plain_reg(*by) || !is_invariant(variable.loop, by->index) ||
        variable.step_register != no_index) {
      return false;
    }
    variable.step_register = by->index;
    variable.step_negated = subtracts;
    return true;
  }

  // Follows the only definitions in the loop back from `reg` until they come to `reg` again.
  void try_register(std::uint32_t loop, std::uint32_t reg) {
    InductionVariable variable;
    variable.loop = loop;
    variable.reg = reg;
    variable.update = no_index;
    std::uint32_t at = reg;
    std::uint32_t updated = no_index;
    for (int i = 0; i < longest_chain; ++i) {
      const std::uint32_t definition = only_definition(loop, at);
      if (definition == no_index || !runs_every_trip(loop, definition)) return;
      const std::uint32_t before = at;
      if (!add_step(variable, definition, at)) return;
      if (updated == no_index && variable.update == definition) updated = before;
      if (at == reg) break;
    }
    if (at != reg || variable.update == no_index) return;
    if (variable.step == 0 && variable.step_register == no_index) return;
    const std::uint32_t first = cfg_.blocks()[cfg_.loops()[loop].header].first;
    const auto reaching = def_use_.reaching(reg, first);
    std::uint32_t outside = 0;
    for (const std::uint32_t definition : reaching.definitions) {
      if (in_loop(loop, definition)) continue;
      variable.initial = definition;
      ++outside;
    }
    if (outside != 1) variable.initial = no_index;
    facts_.variables.push_back(variable);
    updated_.push_back(updated);
  }

  void find_variables(std::uint32_t loop) {
    std::vector<std::uint32_t> candidates;
    for (const std::uint32_t block : cfg_.loops()[loop].blocks) {
      const BasicBlock& here = cfg_.blocks()[block];
      for (std::uint32_t i = here.first; i < here.first + here.count; ++i) {
        const Opcode opcode = body_.instructions[i].opcode;
        if (opcode != Opcode::add && opcode != Opcode::sub && opcode != Opcode::mov) continue;
        for_each_written(body_, body_.instructions[i],
                         [&](std::uint32_t reg) { candidates.push_back(reg); });
      }
    }
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    const std::uint32_t first = cfg_.blocks()[cfg_.loops()[loop].header].first;
    for (const std::uint32_t reg : candidates) {
      // Only what lives around the back edge is a variable of the loop.
      const auto reaching = def_use_.reaching(reg, first);
      const bool goes_round =
          std::any_of(reaching.definitions.begin(), reaching.definitions.end(),
                      [&](std::uint32_t definition) { return in_loop(loop, definition); });
      const bool comes_in =
          std::any_of(reaching.definitions.begin(), reaching.definitions.end(),
                      [&](std::uint32_t definition) { return !in_loop(loop, definition); });
      if (goes_round && comes_in) try_register(loop, reg);
    }
  }

  void find_tests(std::uint32_t loop) {
    for (const std::uint32_t block : cfg_.loops()[loop].blocks) {
      const BasicBlock& here = cfg_.blocks()[block];
      if (here.count == 0 || here.successors.size() != 2) continue;
      const std::uint32_t branch = here.first + here.count - 1;
      const Instruction& last = body_.instructions[branch];
      if (last.predicate == no_index) continue;
      const auto is_inside = [&](std::uint32_t target) {
        const auto& blocks = cfg_.loops()[loop].blocks;
        return std::binary_search(blocks.begin(), blocks.end(), target);
      };
      const bool taken_stays = is_inside(here.successors[0]);
      if (taken_stays == is_inside(here.successors[1])) continue;
      const auto reaching = def_use_.reaching(last.predicate, branch);
      if (reaching.definitions.size() != 1) continue;
      add_test(loop, branch, reaching.definitions[0],
               taken_stays ? last.predicate_negated : !last.predicate_negated);
    }
  }

  void add_test(std::uint32_t loop, std::uint32_t branch, std::uint32_t compare,
                bool leaves_when_true) {
    const Instruction& instruction = body_.instructions[compare];
    if (instruction.opcode != Opcode::setp || !in_loop(loop, compare)) return;
    const auto operands = body_.operands_of(instruction);
    if (operands.size() != 3 || operands[0].kind != OperandKind::reg) return;
    for (std::uint32_t which = 1; which <= 2; ++which) {
      const Operand& other = operands[3 - which];
      const bool bounded = other.kind == OperandKind::immediate ||
                           (other.kind == OperandKind::reg && is_invariant(loop, other.index));
      if (!bounded || operands[which].kind != OperandKind::reg) continue;
      for (std::uint32_t v = 0; v < facts_.variables.size(); ++v) {
        const InductionVariable& variable = facts_.variables[v];
        if (variable.loop != loop) continue;
        const std::uint32_t reg = operands[which].index;
        if (reg != variable.reg && reg != updated_[v]) continue;
        const bool updated = reg != variable.reg || comes_before(last_update(v), compare);
        facts_.tests.push_back({loop, compare, branch, leaves_when_true, which, v, updated});
        return;
      }
    }
  }

  // The instruction that gives the variable its next value under its own name.
  [[nodiscard]] std::uint32_t last_update(std::uint32_t variable) const {
    return only_definition(facts_.variables[variable].loop, facts_.variables[variable].reg);
  }

  // Both run on every trip; which comes first?
  [[nodiscard]] bool comes_before(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t block_a = cfg_.block_of(a);
    const std::uint32_t block_b = cfg_.block_of(b);
    return block_a == block_b ? a < b : cfg_.dominates(block_a, block_b);
  }

  const Module& module_;
  const Body& body_;
  const Cfg& cfg_;
  const DefUse& def_use_;
  LoopFacts facts_;
  std::vector<std::uint32_t> updated_;  // by variable: the register that the update writes
};

}  // namespace

LoopFacts find_induction(const Module& module, const Body& body, const Cfg& cfg,
                         const DefUse& def_use) {
  return InductionFinder(module, body, cfg, def_use).run();
}

}  // namespace demarc::ptx
