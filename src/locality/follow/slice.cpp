// Cuts out of a kernel what decides which global addresses it touches.
#include "follow/slice.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "demarc/ptx/def_use.hpp"
#include "demarc/ptx/printer.hpp"
#include "follow/translate.hpp"
#include "predict/waits.hpp"

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

// Other than loads, stores, atomics and cp.async: may it touch global memory?
bool may_touch_global(const ptx::Instruction& instruction, const ptx::Mnemonic& mnemonic) {
  using ptx::Opcode;
  const bool somewhere =
      mnemonic.space == ptx::StateSpace::global || mnemonic.space == ptx::StateSpace::none;
  switch (instruction.opcode) {
    case Opcode::unknown:
    case Opcode::cp_async_bulk:
    case Opcode::cp_reduce_async_bulk:
    case Opcode::cp_async_bulk_tensor:
    case Opcode::cp_reduce_async_bulk_tensor:
    case Opcode::multimem_cp_async_bulk:
    case Opcode::multimem_cp_reduce_async_bulk:
    case Opcode::tensormap_cp_fenceproxy:
    case Opcode::tex:
    case Opcode::tld4:
    case Opcode::suld:
    case Opcode::sust:
    case Opcode::sured:
      return true;
    case Opcode::tensormap_replace:
    case Opcode::wmma_load:
    case Opcode::wmma_store:
      return somewhere;
    default:
      return false;
  }
}

bool prefetches_global(const ptx::Instruction& instruction, const ptx::Mnemonic& mnemonic) {
  using ptx::Opcode;
  switch (instruction.opcode) {
    case Opcode::prefetch:
    case Opcode::prefetchu:
      return mnemonic.space == ptx::StateSpace::global || mnemonic.space == ptx::StateSpace::none;
    case Opcode::cp_async_bulk_prefetch:
    case Opcode::cp_async_bulk_prefetch_tensor:
      return true;
    default:
      return false;
  }
}

// The first operand of an instruction that is not understood: what it writes, as all of PTX does.
// Empty when that is an address.
std::string_view first_operand(std::string_view text, std::string_view mnemonic) {
  const std::size_t at = text.find(mnemonic);
  if (at == std::string_view::npos) return text;
  text.remove_prefix(at + mnemonic.size());
  int depth = 0;
  std::size_t end = 0;
  for (; end < text.size() && (text[end] != ',' || depth > 0); ++end) {
    if (text[end] == '{' || text[end] == '(') ++depth;
    if (text[end] == '}' || text[end] == ')') --depth;
  }
  text = text.substr(0, end);
  return text.find('[') == std::string_view::npos ? text : std::string_view{};
}

// The registers that the text names.
std::vector<std::uint32_t> named_registers(const ptx::Body& body, std::string_view text) {
  std::vector<std::uint32_t> found;
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
  };
  for (std::uint32_t reg = 0; reg < body.register_count; ++reg) {
    const std::string name = body.register_name(reg);
    for (std::size_t at = text.find(name); at != std::string_view::npos;
         at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at > 0 && in_name(text[at - 1])) || (end < text.size() && in_name(text[end]))) continue;
      found.push_back(reg);
      break;
    }
  }
  return found;
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
         const LeafValues& leaves)
      : module_(module),
        function_(function),
        body_(function.body),
        cfg_(cfg),
        leaves_(leaves),
        access_of_(body_.instructions.size(), ptx::no_index),
        relevant_(body_.instructions.size(), false),
        needed_(body_.register_count, false),
        branch_matters_(cfg.blocks().size(), false),
        regions_(cfg.blocks().size()) {}

  Slice run() {
    find_accesses();
    mark_waits(body_, cfg_, slice_.accesses);
    order_accesses();
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b)
      if (cfg_.blocks()[b].successors.size() > 1) regions_[b] = region_of(b);
    close();
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b) slice_.blocks.push_back(block_of(b));
    number_slots();
    return std::move(slice_);
  }

 private:
  void find_accesses() {
    for (std::uint32_t i = 0; i < body_.instructions.size(); ++i) {
      const ptx::Instruction& instruction = body_.instructions[i];
      const OpcodeGroup group = ptx::info(instruction.opcode).group;
      const ptx::Mnemonic& mnemonic = module_.mnemonic(instruction);
      const bool reachable = cfg_.reachable(cfg_.block_of(i));
      if (group == OpcodeGroup::call) slice_.calls_functions = true;
      const bool copy = instruction.opcode == ptx::Opcode::cp_async;
      const bool plain = group == OpcodeGroup::load || group == OpcodeGroup::store ||
                         group == OpcodeGroup::atomic || copy;
      if (reachable && (!mnemonic.understood || instruction.opcode == ptx::Opcode::unknown))
        changed_by_[i] =
            named_registers(body_, first_operand(module_.text_of(instruction), mnemonic.text));
      if (!plain) {
        if (reachable && may_touch_global(instruction, mnemonic)) slice_.not_followed.push_back(i);
        if (reachable && prefetches_global(instruction, mnemonic)) slice_.prefetches.push_back(i);
        continue;
      }
      // A generic address may lead to global memory: only the emulator knows.
      const bool generic = !copy && mnemonic.space == ptx::StateSpace::none;
      if (mnemonic.space != ptx::StateSpace::global && !generic && !copy) continue;
      if (!reachable) continue;
      const ptx::Operand* address = address_operand(body_, instruction);
      if (address == nullptr || !mnemonic.understood) {
        slice_.not_followed.push_back(i);
        continue;
      }
      Access access;
      access.instruction = ptx::print(module_, function_, instruction);
      access.index = i;
      access.line = instruction.line;
      access.source_line = module_.source_position(body_, instruction);
      access.space = generic ? "generic" : "global";
      access.kind = group == OpcodeGroup::load || copy ? AccessKind::load
                    : group == OpcodeGroup::store      ? AccessKind::store
                                                       : AccessKind::atomic;
      const CopySize copied = copy_size(body_, instruction, mnemonic);
      access.bytes = copy ? copied.bytes : ptx::byte_size(mnemonic.type()) * mnemonic.vector_width;
      access.passes_l1 = passes_l1(mnemonic);
      access_of_[i] = static_cast<std::uint32_t>(slice_.accesses.size());
      slice_.accesses.push_back(access);
      slice_.closable.push_back(!generic && (!copy || copied.fixed) &&
                                (address->base == ptx::Base::reg ||
                                 address->base == ptx::Base::none ||
                                 variable_address(*address, leaves_)));
      const std::uint32_t block = cfg_.block_of(i);
      slice_.guarded.push_back(!cfg_.post_dominates(block, cfg_.entry()) ||
                               instruction.predicate != ptx::no_index);
      slice_.in_loop.push_back(cfg_.loop_of(block) != ptx::no_index);
      slice_.loops_of_access.push_back(loops_around(block));
      relevant_[i] = true;
    }
    if (slice_.calls_functions) slice_.closable.assign(slice_.closable.size(), false);
  }

  // Outermost first.
  std::vector<std::uint32_t> loops_around(std::uint32_t block) const {
    std::vector<std::uint32_t> loops;
    for (std::uint32_t loop = cfg_.loop_of(block); loop != ptx::no_index;
         loop = cfg_.loops()[loop].parent)
      loops.push_back(loop);
    std::reverse(loops.begin(), loops.end());
    return loops;
  }

  // An order in which every thread passes them: level by level the loop around an access, then its
  // block, by their places in an order without back edges.
  void order_accesses() {
    slice_.reducible = cfg_.reducible();
    std::vector<std::uint64_t> place(cfg_.blocks().size());
    const auto order = cfg_.reverse_post_order();
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = std::uint64_t{i} << 32U;
    for (const ptx::Loop& loop : cfg_.loops()) slice_.loop_headers.push_back(loop.header);
    for (std::uint32_t b = 0; b < cfg_.blocks().size(); ++b)
      slice_.loops_of_block.push_back(loops_around(b));
    for (std::uint32_t a = 0; a < slice_.accesses.size(); ++a) {
      std::vector<std::uint64_t>& levels = slice_.order.emplace_back();
      for (const std::uint32_t loop : slice_.loops_of_access[a])
        levels.push_back(place[slice_.loop_headers[loop]]);
      levels.push_back(place[cfg_.block_of(slice_.accesses[a].index)] + 1 + a);
    }
  }

  // Calls f(register) for what instruction i writes or, when it is not understood, may write.
  template <class F>
  void for_each_changed(std::uint32_t i, F&& f) const {
    ptx::for_each_written(body_, body_.instructions[i], f);
    if (const auto it = changed_by_.find(i); it != changed_by_.end())
      for (const std::uint32_t reg : it->second) f(reg);
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
        if (!relevant_[i]) {
          for_each_changed(i, [&](std::uint32_t reg) {
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
        translate_instruction(module_, function_, instruction, leaves_);
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
    // A branch that is not a two-way decision on a predicate counts as one that depends on data.
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
        for_each_changed(i, [&](std::uint32_t reg) { written[reg] = needed_[reg]; });
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
      source.value = variable_address(*address, leaves_).value_or(address->value);
    } else {
      operation = translate_instruction(module_, function_, instruction, leaves_);
    }
    operation.predicate = instruction.predicate;
    operation.predicate_negated = instruction.predicate_negated;
    operations.push_back(operation);
    // Whatever else the instruction writes (loaded values, second results) is unknown.
    for_each_changed(i, [&](std::uint32_t reg) {
      if (!needed_[reg] || reg == operations.back().target) return;
      SliceOperation poison;
      poison.target = reg;
      poison.predicate = instruction.predicate;
      poison.predicate_negated = instruction.predicate_negated;
      operations.push_back(poison);
    });
  }

  // Slots are the registers that the slice names, without gaps.
  void number_slots() {
    std::vector<std::uint32_t> numbers(body_.register_count, no_slot);
    const auto number = [&](std::uint32_t& slot) {
      if (slot == no_slot) return;
      if (numbers[slot] == no_slot) numbers[slot] = slice_.slots++;
      slot = numbers[slot];
    };
    for (SliceBlock& block : slice_.blocks) {
      number(block.predicate);
      for (std::uint32_t& slot : block.region_slots) number(slot);
      for (SliceOperation& operation : block.operations) {
        number(operation.target);
        number(operation.predicate);
        for (Source3& source : operation.sources)
          if (source.kind == Source3::Kind::slot) number(source.slot);
      }
    }
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  const ptx::Body& body_;
  const ptx::Cfg& cfg_;
  const LeafValues& leaves_;
  std::vector<std::uint32_t> access_of_;
  std::vector<bool> relevant_;
  std::vector<bool> needed_;
  std::vector<bool> branch_matters_;
  std::vector<std::vector<std::uint32_t>> regions_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> changed_by_;  // what is not understood
  bool changed_ = false;
  Slice slice_;
};

}  // namespace

Slice slice_kernel(const ptx::Module& module, const ptx::Function& function, const ptx::Cfg& cfg,
                   const LeafValues& leaves) {
  return Slicer(module, function, cfg, leaves).run();
}

}  // namespace demarc::locality
