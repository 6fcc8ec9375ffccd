#include "slice.hpp"

#include <algorithm>

#include "demarc/ptx/def_use.hpp"
#include "demarc/ptx/printer.hpp"
#include "translate.hpp"

namespace demarc::locality {
namespace {

using ptx::OpcodeGroup;

const ptx::Operand* address_operand(const ptx::Body& body, const ptx::Instruction& instruction) {
  // cp.async [to], [from], bytes: the second is in global memory.
  bool skip = instruction.opcode == ptx::Opcode::cp_async;
  for (const ptx::Operand& operand : body.operands_of(instruction)) {
    if (operand.kind != ptx::OperandKind::address) continue;
    if (!skip) return &operand;
    skip = false;
  }
  return nullptr;
}

bool passes_l1(const ptx::Mnemonic& mnemonic) {
  using ptx::Modifier;
  constexpr Modifier passing[] = {Modifier::cg,      Modifier::cv,      Modifier::volatile_,
                                  Modifier::relaxed, Modifier::acquire, Modifier::mmio};
  return std::any_of(std::begin(passing), std::end(passing),
                     [&mnemonic](Modifier modifier) { return mnemonic.has(modifier); });
}

// cp.async names the bytes it copies; how many of them it reads may depend on a register.
struct CopySize {
  std::uint32_t bytes = 0;
  bool fixed = false;
};
CopySize copy_size(const ptx::Body& body, const ptx::Instruction& instruction,
                   const ptx::Mnemonic& mnemonic) {
  const auto operands = body.operands_of(instruction);
  CopySize size;
  if (operands.size() > 2 && operands[2].kind == ptx::OperandKind::immediate)
    size.bytes = static_cast<std::uint32_t>(operands[2].value);
  size.fixed =
      operands.size() == 3 || (operands.size() == 4 && mnemonic.has(ptx::Modifier::L2_cache_hint));
  return size;
}

// Everything that slicing one kernel needs.
class Slicer {
 public:
  Slicer(const ptx::Module& module, const ptx::Function& function, const ptx::Cfg& cfg,
         const std::vector<std::vector<std::byte>>& parameters)
      : module_(module),
        function_(function),
        body_(function.body),
        cfg_(cfg),
        parameters_(parameters),
        access_of_(body_.instructions.size(), ptx::no_index),
        relevant_(body_.instructions.size(), false),
        needed_(body_.register_count, false),
        branch_matters_(cfg.blocks().size(), false),
        regions_(cfg.blocks().size()) {}

  Slice run() {
    find_accesses();
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b)
      if (cfg_.blocks()[b].successors.size() > 1) regions_[b] = region_of(b);
    close();
    slice_.slots = body_.register_count;
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b) slice_.blocks.push_back(block_of(b));
    return std::move(slice_);
  }

 private:
  void find_accesses() {
    for (std::uint32_t i = 0; i < body_.instructions.size(); ++i) {
      const ptx::Instruction& instruction = body_.instructions[i];
      const OpcodeGroup group = ptx::info(instruction.opcode).group;
      if (group == OpcodeGroup::call) slice_.calls_functions = true;
      const bool copy = instruction.opcode == ptx::Opcode::cp_async;
      if (group != OpcodeGroup::load && group != OpcodeGroup::store &&
          group != OpcodeGroup::atomic && !copy)
        continue;
      const ptx::Mnemonic& mnemonic = module_.mnemonic(instruction);
      // A generic address may lead to global memory: only the emulator knows.
      const bool generic = !copy && mnemonic.space == ptx::StateSpace::none;
      if (mnemonic.space != ptx::StateSpace::global && !generic && !copy) continue;
      const ptx::Operand* address = address_operand(body_, instruction);
      if (address == nullptr || !cfg_.reachable(cfg_.block_of(i))) continue;
      Access access;
      access.instruction = ptx::print(module_, function_, instruction);
      access.index = i;
      access.line = instruction.line;
      access.space = generic ? "generic" : "global";
      access.kind = group == OpcodeGroup::load || copy ? AccessKind::load
                    : group == OpcodeGroup::store      ? AccessKind::store
                                                       : AccessKind::atomic;
      const CopySize copied = copy_size(body_, instruction, mnemonic);
      access.bytes = copy ? copied.bytes : ptx::byte_size(mnemonic.type()) * mnemonic.vector_width;
      access.passes_l1 = passes_l1(mnemonic);
      access_of_[i] = static_cast<std::uint32_t>(slice_.accesses.size());
      slice_.accesses.push_back(access);
      slice_.closable.push_back(
          !generic && mnemonic.understood && (!copy || copied.fixed) &&
          (address->base == ptx::Base::reg || address->base == ptx::Base::none));
      const std::uint32_t block = cfg_.block_of(i);
      slice_.guarded.push_back(!cfg_.post_dominates(block, cfg_.entry()) ||
                               instruction.predicate != ptx::no_index);
      slice_.in_loop.push_back(cfg_.loop_of(block) != ptx::no_index);
      relevant_[i] = true;
    }
    if (slice_.calls_functions) slice_.closable.assign(slice_.closable.size(), false);
  }

  // Blocks that can be passed between a branch and where its paths meet.
  std::vector<std::uint32_t> region_of(std::uint32_t branch) const {
    const std::uint32_t meeting = cfg_.immediate_post_dominator(branch);
    std::vector<bool> seen(cfg_.blocks().size(), false);
    std::vector<std::uint32_t> stack(cfg_.blocks()[branch].successors);
    std::vector<std::uint32_t> found;
    while (!stack.empty()) {
      const std::uint32_t b = stack.back();
      stack.pop_back();
      if (b == meeting || seen[b]) continue;
      seen[b] = true;
      found.push_back(b);
      for (const std::uint32_t next : cfg_.blocks()[b].successors) stack.push_back(next);
    }
    return found;
  }

  void need(std::uint32_t reg) {
    if (needed_[reg]) return;
    needed_[reg] = true;
    changed_ = true;
  }

  // Grows the set of relevant instructions until nothing is missing.
  void close() {
    do {
      changed_ = false;
      for (std::uint32_t i = 0; i < body_.instructions.size(); ++i) {
        const ptx::Instruction& instruction = body_.instructions[i];
        if (!relevant_[i]) {
          ptx::for_each_written(body_, instruction, [&](std::uint32_t reg) {
            if (needed_[reg]) relevant_[i] = true;
          });
          changed_ = changed_ || relevant_[i];
        }
        if (relevant_[i]) need_sources(i);
      }
      for (std::uint32_t b = 0; b < regions_.size(); ++b) {
        if (branch_matters_[b] || cfg_.blocks()[b].successors.size() < 2) continue;
        branch_matters_[b] =
            std::any_of(regions_[b].begin(), regions_[b].end(), [&](std::uint32_t inside) {
              const ptx::BasicBlock& block = cfg_.blocks()[inside];
              for (std::uint32_t i = block.first; i < block.first + block.count; ++i)
                if (relevant_[i]) return true;
              return false;
            });
        if (!branch_matters_[b]) continue;
        changed_ = true;
        if (const std::uint32_t reg = condition_of(b); reg != ptx::no_index) need(reg);
      }
    } while (changed_);
  }

  void need_sources(std::uint32_t i) {
    const ptx::Instruction& instruction = body_.instructions[i];
    if (instruction.predicate != ptx::no_index) need(instruction.predicate);
    if (access_of_[i] != ptx::no_index) {
      const ptx::Operand* address = address_operand(body_, instruction);
      if (address->base == ptx::Base::reg) need(address->index);
      return;
    }
    const SliceOperation operation =
        translate_instruction(module_, function_, instruction, parameters_);
    for (const Source3& source : operation.sources)
      if (source.kind == Source3::Kind::slot) need(source.slot);
  }

  [[nodiscard]] const ptx::Instruction* last_of(std::uint32_t b) const {
    const ptx::BasicBlock& block = cfg_.blocks()[b];
    return block.count == 0 ? nullptr : &body_.instructions[block.first + block.count - 1];
  }
  [[nodiscard]] std::uint32_t condition_of(std::uint32_t b) const {
    const ptx::Instruction* last = last_of(b);
    return last == nullptr ? ptx::no_index : last->predicate;
  }

  SliceBlock block_of(std::uint32_t b) {
    SliceBlock result;
    const ptx::BasicBlock& block = cfg_.blocks()[b];
    for (std::uint32_t i = block.first; i < block.first + block.count; ++i)
      if (relevant_[i]) add_operations(i, result.operations);
    if (block.successors.empty()) return result;
    if (block.successors.size() == 1) {
      result.end = SliceBlock::End::jump;
      result.next = block.successors[0];
      return result;
    }
    const std::uint32_t meeting = cfg_.immediate_post_dominator(b);
    if (!branch_matters_[b] && meeting != ptx::no_index) {
      result.end = SliceBlock::End::jump;
      result.next = meeting;
      return result;
    }
    result.end = SliceBlock::End::branch;
    result.meeting = meeting == ptx::no_index ? cfg_.exit() : meeting;
    const ptx::Instruction* last = last_of(b);
    // A branch that is no two-way decision on a predicate counts as one that depends on data.
    const bool plain = block.successors.size() == 2 && condition_of(b) != ptx::no_index;
    if (plain) {
      result.predicate = last->predicate;
      result.predicate_negated = last->predicate_negated;
      const bool leaves = ptx::info(last->opcode).group == OpcodeGroup::exit;
      result.taken = leaves ? cfg_.exit() : block.successors[0];
      result.next = block.successors[0] == result.taken ? block.successors[1] : block.successors[0];
    }
    std::vector<bool> written(body_.register_count, false);
    for (const std::uint32_t inside : regions_[b]) {
      const ptx::BasicBlock& part = cfg_.blocks()[inside];
      for (std::uint32_t i = part.first; i < part.first + part.count; ++i) {
        if (access_of_[i] != ptx::no_index) result.region_accesses.push_back(access_of_[i]);
        ptx::for_each_written(body_, body_.instructions[i],
                              [&](std::uint32_t reg) { written[reg] = needed_[reg]; });
      }
    }
    for (std::uint32_t reg = 0; reg < written.size(); ++reg)
      if (written[reg]) result.region_slots.push_back(reg);
    return result;
  }

  void add_operations(std::uint32_t i, std::vector<SliceOperation>& operations) {
    const ptx::Instruction& instruction = body_.instructions[i];
    SliceOperation operation;
    if (access_of_[i] != ptx::no_index) {
      const ptx::Operand* address = address_operand(body_, instruction);
      operation.access = access_of_[i];
      Source3& source = operation.sources[0];
      source.kind = address->base == ptx::Base::reg ? Source3::Kind::slot : Source3::Kind::constant;
      source.slot = address->index;
      source.value = address->value;
    } else {
      operation = translate_instruction(module_, function_, instruction, parameters_);
    }
    operation.predicate = instruction.predicate;
    operation.predicate_negated = instruction.predicate_negated;
    operations.push_back(operation);
    // Whatever else the instruction writes (loaded values, second results) is unknown.
    ptx::for_each_written(body_, instruction, [&](std::uint32_t reg) {
      if (!needed_[reg] || reg == operations.back().target) return;
      SliceOperation poison;
      poison.target = reg;
      poison.predicate = instruction.predicate;
      poison.predicate_negated = instruction.predicate_negated;
      operations.push_back(poison);
    });
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ptx::Body& body_;
  const ptx::Cfg& cfg_;
  const std::vector<std::vector<std::byte>>& parameters_;
  std::vector<std::uint32_t> access_of_;
  std::vector<bool> relevant_;
  std::vector<bool> needed_;
  std::vector<bool> branch_matters_;
  std::vector<std::vector<std::uint32_t>> regions_;
  bool changed_ = false;
  Slice slice_;
};

}  // namespace

Slice slice_kernel(const ptx::Module& module, const ptx::Function& function, const ptx::Cfg& cfg,
                   const std::vector<std::vector<std::byte>>& parameters) {
  return Slicer(module, function, cfg, parameters).run();
}

}  // namespace demarc::locality
