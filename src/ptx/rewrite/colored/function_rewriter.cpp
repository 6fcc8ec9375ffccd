// Goes through the instructions of a function and rewrites or refuses each.
#include "rewrite/colored/function_rewriter.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "parse/reporter.hpp"
#include "rewrite/colored/access.hpp"
#include "rewrite/colored/access_text.hpp"
#include "rewrite/colored/cache_policies.hpp"
#include "rewrite/colored/callees.hpp"
#include "rewrite/colored/eviction.hpp"
#include "rewrite/colored/origins.hpp"
#include "rewrite/colored/register_accesses.hpp"
#include "rewrite/colored/shared_translations.hpp"
#include "rewrite/colored/system_calls.hpp"
#include "rewrite/kernel_text.hpp"

namespace demarc::ptx {
namespace {

class FunctionRewriter {
 public:
  FunctionRewriter(const ColoredContext& context, std::uint32_t index, std::uint8_t windows)
      : context_(context),
        module_(context.module),
        function_(module_.functions[index]),
        body_(function_.body),
        frame_(context.frames.of(index)),
        windows_(windows),
        origins_(origins_of(module_, function_)),
        callees_(module_, body_),
        short_locals_(names_locals_shortly()) {
    if (context.options.counts_shared) shared_.emplace(body_);
  }

  RewrittenFunction rewrite() {
    MessageUses messages = message_uses_of(module_, function_);
    out_.refusals = std::move(messages.refusals);
    messages_.insert(messages.instructions.begin(), messages.instructions.end());
    check_frame();
    for (at_ = 0; at_ < body_.instructions.size(); ++at_) {
      if (!check_operands(instruction())) continue;
      rewrite(instruction());
    }
    translate_registers();
    add_prologue();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Instruction& instruction() const { return body_.instructions[at_]; }
  [[nodiscard]] const Mnemonic& mnemonic() const { return module_.mnemonic(instruction()); }
  [[nodiscard]] std::string_view text() const { return module_.text_of(instruction()); }

  void refuse(std::string_view why) {
    out_.refusals.push_back({instruction().line, fmt::format("'{}' {}", excerpt(text()), why)});
  }
  void replace(std::string by) {
    out_.splices.push_back({instruction().text_offset, text().size(), std::move(by)});
  }
  [[nodiscard]] std::string guard() const {
    if (instruction().predicate == no_index) return {};
    return fmt::format("@{}{} ", instruction().predicate_negated ? "!" : "",
                       body_.register_name(instruction().predicate));
  }

  // Whether there is coloured memory for variables or for local ones.
  [[nodiscard]] bool is_given(std::uint64_t ColoredPlaces::*place) const {
    const auto& known = context_.places.known();
    return !known || *known.*place != 0;
  }

  // LLVM's compilers can keep addresses of local memory in 32 bits. In such a function each address
  // of the local window, of 64 bits too, is an offset from the frame.
  [[nodiscard]] bool names_locals_shortly() const {
    return frame_.bytes != 0 &&
           std::any_of(body_.instructions.begin(), body_.instructions.end(),
                       [this](const Instruction& one) { return names_shortly(one); });
  }
  [[nodiscard]] bool names_shortly(const Instruction& one) const {
    const Mnemonic& what = module_.mnemonic(one);
    const auto operands = body_.operands_of(one);
    if (one.opcode == Opcode::mov) {
      return operands.size() == 2 && is_local(operands[1]) && byte_size(what.type()) == short_bytes;
    }
    if (what.space != StateSpace::local) return false;
    const Operand* address = address_of(body_, one, access_of(module_, body_, one));
    return address != nullptr && address->base == Base::reg && is_short(*address);
  }
  [[nodiscard]] bool is_short(const Operand& address) const {
    return byte_size(body_.register_type(address.index)) == short_bytes;
  }

  void check_frame() {
    if (short_locals_ && !function_.is_entry) {
      out_.refusals.push_back(
          {function_.line, fmt::format("'{}' keeps addresses of local variables in 32 bits, but "
                                       "its caller may keep them in 64",
                                       function_.name)});
    }
    if (frame_.recursive) {
      out_.refusals.push_back({function_.line, fmt::format(recursive_refusal, function_.name)});
    }
    for (const Variable& variable : body_.variables) {
      if (variable.space != StateSpace::local || variable.byte_size() != 0) continue;
      out_.refusals.push_back(
          {variable.line, fmt::format("the local variable '{}' has no size", variable.name)});
    }
    if (frame_.bytes != 0 && !is_given(&ColoredPlaces::local)) {
      out_.refusals.push_back(
          {function_.line, fmt::format("'{}' has {} bytes of local variables per thread, for which "
                                       "no coloured memory is given",
                                       function_.name, frame_.bytes)});
    }
  }

  // What the rewritten instructions need where the function begins.
  void add_prologue() {
    const bool has_frame = frame_.bytes != 0 && is_given(&ColoredPlaces::local);
    std::string prologue;
    if (out_.accesses != 0) prologue += context_.translation.prologue;
    if (copies_) prologue += streaming_copies_prologue;
    prologue += register_prologue_;
    if (has_frame || names_variables_) {
      prologue += context_.places.loads(&ColoredPlaces::variables, &ColoredPlaces::local,
                                        &ColoredPlaces::local_threads);
    }
    if (has_frame) prologue += frame_prologue(frame_, context_.places);
    if (prologue.empty()) return;
    const auto found = find_kernel_text(module_, function_);
    if (!found) {
      out_.refusals.push_back({function_.line, "its body cannot be found"});
      return;
    }
    // In front of a rewritten instruction at the same place.
    out_.splices.insert(out_.splices.begin(), {found->body, 0, std::move(prologue)});
    if (has_frame) remove_declarations();
  }

  // ptxas takes a stack frame for local variables that nothing uses, too.
  void remove_declarations() {
    std::set<std::size_t> removed;  // several variables may be declared at once
    for (const Variable& variable : body_.variables) {
      if (variable.space != StateSpace::local) continue;
      const std::size_t begin = module_.text->rfind(".local", variable.text_offset);
      const std::size_t end = module_.text->find(';', variable.text_offset);
      if (begin == std::string::npos || end == std::string::npos || !removed.insert(begin).second) {
        continue;
      }
      out_.splices.push_back({begin, end + 1 - begin, ""});
    }
  }

  // Operands that no kind of instruction may have; false: the instruction is refused.
  bool check_operands(const Instruction& instruction) {
    for (const Operand& operand : body_.operands_of(instruction)) {
      if (!check_operand(operand)) return false;
    }
    return true;
  }

  bool check_operand(const Operand& operand) {
    if (operand.kind == OperandKind::special) {
      const auto name = info(static_cast<SpecialRegister>(operand.index)).name;
      if (!name.starts_with("%envreg")) return true;
      refuse(fmt::format(
          "reads {}, through which the driver hands out addresses of memory without colours",
          name));
      return false;
    }
    if (operand.has_children()) {
      for (const Operand& child : body_.children(operand)) {
        if (is_address(child)) {
          refuse("uses the address of a variable in a way that cannot be followed");
          return false;
        }
        if (!check_operand(child)) return false;
      }
      return true;
    }
    if (operand.base != Base::global || messages_.contains(at_)) return true;
    const std::string why = context_.variables.refusal(operand.index);
    if (why.empty()) return true;
    refuse(fmt::format("cannot be coloured: {}", why));
    return false;
  }

  // The address of a variable of global or local memory.
  [[nodiscard]] bool is_address(const Operand& operand) const {
    return operand.kind == OperandKind::symbol && in_memory(operand);
  }
  [[nodiscard]] bool in_memory(const Operand& operand) const {
    if (operand.base == Base::global) {
      return module_.variables[operand.index].space == StateSpace::global;
    }
    return is_local(operand);
  }
  [[nodiscard]] bool is_local(const Operand& operand) const {
    return operand.base == Base::variable &&
           body_.variables[operand.index].space == StateSpace::local;
  }

  void rewrite(const Instruction& instruction) {
    switch (instruction.opcode) {
      case Opcode::call:
        rewrite_call(instruction);
        return;
      case Opcode::isspacep:
        check_question();
        return;
      case Opcode::cvta:
        if (mnemonic().space == StateSpace::local) {
          move(instruction);
          return;
        }
        break;
      default:
        break;
    }
    const auto operands = body_.operands_of(instruction);
    if (std::any_of(operands.begin(), operands.end(),
                    [this](const Operand& operand) { return is_address(operand); })) {
      if (messages_.contains(at_)) {
        keep(operands);
        return;
      }
      move(instruction);
      return;
    }
    check_stack(instruction);
    rewrite_access(access_of(module_, body_, instruction));
  }

  void rewrite_call(const Instruction& instruction) {
    switch (system_call_of(module_, body_, instruction)) {
      case SystemCall::none:
        if (const auto why = callees_.objection(instruction); !why.empty()) refuse(why);
        if (short_locals_)
          refuse("calls a function of the module where addresses of local variables have 32 bits");
        return;
      case SystemCall::assertion:
        return;
      case SystemCall::printing:
        if (context_.options.printing == ColoredPrinting::silenced) return;
        refuse("prints through a buffer of the driver, which is not coloured (--silence-printf)");
        return;
      case SystemCall::heap:
        refuse("uses the heap of the driver, which is not coloured");
        return;
      case SystemCall::other:
        refuse(
            "calls a function that is not in the module, so the addresses passed to it cannot be "
            "translated");
        return;
    }
  }

  // Local memory is coloured memory, and isspacep does not know.
  void check_question() {
    const StateSpace space = mnemonic().space;
    if (!context_.keeps_local || (space != StateSpace::local && space != StateSpace::global)) {
      return;
    }
    refuse(
        "asks whether an address lies in local memory, but coloured addressing puts local memory "
        "elsewhere");
  }

  // Parameters of functions that are called lie on a stack of the driver.
  void check_stack(const Instruction& instruction) {
    if (function_.is_entry) return;
    for (const Operand& operand : body_.operands_of(instruction)) {
      if (operand.kind != OperandKind::symbol || operand.base != Base::parameter) continue;
      if (function_.parameters[operand.index].space != StateSpace::param) continue;
      refuse("takes the address of a parameter, which then lies in local memory of the driver");
    }
  }

  void keep(std::span<const Operand> operands) {
    for (const Operand& operand : operands) {
      if (operand.base == Base::global) out_.kept.push_back(operand.index);
    }
  }

  // mov and cvta: the address of a variable, or one that stays what it is.
  void move(const Instruction& instruction) {
    const auto operands = body_.operands_of(instruction);
    const bool moves = instruction.opcode == Opcode::mov || instruction.opcode == Opcode::cvta;
    const std::size_t size = byte_size(mnemonic().type());
    if (!moves || operands.size() != 2 || operands[0].kind != OperandKind::reg ||
        (size != 8 && !(size == short_bytes && is_local(operands[1])))) {
      refuse("uses the address of a variable in a way that cannot be followed");
      return;
    }
    const std::string to = body_.register_name(operands[0].index);
    if (operands[1].kind == OperandKind::reg) {
      replace(guard() + generic_from(to, body_.register_name(operands[1].index)));
      return;
    }
    if (!has_place(operands[1])) return;
    if (short_locals_ && is_local(operands[1])) {
      replace(instruction.opcode == Opcode::cvta
                  ? moving(guard(), to, operands[1])
                  : fmt::format("{}mov.b{} \t{}, {};", guard(), 8 * size, to,
                                offset_in_frame(operands[1])));
      return;
    }
    replace(moving(guard(), to, operands[1]));
  }

  // cvta between an address of the local window and the linear one that stands for it.
  [[nodiscard]] std::string generic_from(std::string_view to, std::string_view from) const {
    if (!short_locals_) return fmt::format("mov.b64 \t{}, {};", to, from);
    return fmt::format("{}.s64 \t{}, {}, %demarc_frame;",
                       mnemonic().has(Modifier::to) ? "sub" : "add", to, from);
  }
  [[nodiscard]] std::int64_t offset_in_frame(const Operand& operand) const {
    return static_cast<std::int64_t>(frame_.variables[operand.index]) + operand.offset();
  }

  // Whether a variable of global or local memory has got one; else the instruction is refused.
  bool has_place(const Operand& operand) {
    if (context_.options.accesses != ColoredAccesses::all) {
      refuse("uses a variable, whose place is known only if all accesses are rewritten");
      return false;
    }
    if (operand.base == Base::variable) return is_given(&ColoredPlaces::local);
    if (is_given(&ColoredPlaces::variables)) return true;
    refuse(fmt::format("uses the variable '{}', for which no coloured memory is given",
                       module_.variables[operand.index].name));
    return false;
  }

  // The instruction that puts the linear address of a variable into a register.
  std::string moving(std::string_view guard, std::string_view to, const Operand& operand) {
    if (operand.base == Base::variable) {
      return fmt::format("{}add.s64 \t{}, %demarc_frame, {};", guard, to, offset_in_frame(operand));
    }
    names_variables_ = true;
    const auto offset =
        static_cast<std::int64_t>(*context_.variables.offset(operand.index)) + operand.offset();
    const auto& known = context_.places.known();
    if (known) {
      return fmt::format("{}mov.u64 \t{}, {};", guard, to,
                         static_cast<std::int64_t>(known->variables) + offset);
    }
    return fmt::format("{}add.s64 \t{}, {}, {};", guard, to,
                       context_.places.operand(&ColoredPlaces::variables), offset);
  }

  void rewrite_access(const Access& access) {
    if (access.reach == MemoryReach::none) return;
    if (access.reach == MemoryReach::refused) {
      refuse(access.why);
      return;
    }
    if (!is_concerned(instruction().opcode, context_.options.accesses)) {
      if (is_plainly_written(text_of(access, {}))) {
        out_.has_policies |= streams_by_policy(mnemonic());
        replace(streaming(mnemonic(), std::string(text()), has_policies()));
      }
      return;
    }
    if (access.bytes > context_.translation.granule) {
      refuse(fmt::format("accesses {} consecutive bytes; these colours keep only {} together",
                         access.bytes, context_.translation.granule));
      return;
    }
    const Operand* address = address_of(body_, instruction(), access);
    if (!is_plainly_written(text_of(access, {}))) {
      refuse("has a comment inside it or a spelling that cannot be followed");
    } else if (address == nullptr || address->base == Base::none) {
      refuse("accesses an address that none of its operands holds, which cannot be coloured");
    } else if (address->base != Base::reg) {
      access_variable(access, *address);
    } else if (short_locals_ && mnemonic().space == StateSpace::local) {
      translate(*address, in_colored(text_of(access, from_frame(*address)), context_.translation));
    } else if (is_short(*address)) {
      refuse("has an address of 32 bits, which cannot be coloured");
    } else if (access.reach == MemoryReach::generic || access.reach == MemoryReach::tile) {
      access_anywhere(access, *address);
    } else {
      translate_register(access, *address);
    }
  }

  [[nodiscard]] bool has_policies() const {
    return has_cache_policies(module_, context_.options.card);
  }

  [[nodiscard]] bool copies_streaming() const {
    return instruction().opcode == Opcode::cp_async && has_policies();
  }

  void access_variable(const Access& access, const Operand& address) {
    if (!in_memory(address) || access.reach == MemoryReach::tile) {
      refuse("accesses a variable in a way that cannot be followed");
    } else if (has_place(address)) {
      translate(address, in_colored(text_of(access, moving("", "%demarc_a", address)),
                                    context_.translation));
    }
  }

  void access_anywhere(const Access& access, const Operand& address) {
    const AccessText to = text_of(access, linear(address));
    const std::uint8_t origin = origins_[address.index];
    if (origin == from_shared && can_name_shared(mnemonic())) {
      replace(in_shared(to));
    } else if (access.reach == MemoryReach::tile) {
      refuse(access.why);
    } else if (origin == from_colored || windows_ == 0) {
      // Arguments of kernels come from the host, which has no other addresses.
      translate_register(access, address);
    } else {
      translate(address, in_one_of(to, context_.translation, windows_));
    }
  }

  void translate(const Operand& address, std::string access) {
    out_.shared += count(address) ? 1U : 0U;
    replace(std::move(access));
  }

  // Whether the address was translated before, where that is asked for.
  bool count(const Operand& address) {
    ++out_.accesses;
    out_.has_policies |= streams_by_policy(mnemonic());
    copies_ |= copies_streaming();
    return shared_ && shared_->is_shared(at_, address);
  }

  // Written when all have been seen: such accesses have neighbours.
  void translate_register(const Access& access, const Operand& address) {
    const bool is_shared = count(address);
    by_register_.push_back({at_, address, text_of(access, {}), is_shared});
  }

  void translate_registers() {
    RegisterAccessesText made = ptx::translate(module_, body_, context_.translation, by_register_);
    std::move(made.splices.begin(), made.splices.end(), std::back_inserter(out_.splices));
    if (shared_) out_.shared += made.shared;
    register_prologue_ = std::move(made.prologue);
  }

  [[nodiscard]] AccessText text_of(const Access& access, std::string address) const {
    return {mnemonic(),
            text(),
            access.bracket,
            std::move(address),
            copies_streaming() ? copy_destination(body_, instruction(), text()) : std::string(),
            has_policies()};
  }

  [[nodiscard]] std::string linear(const Operand& address) const {
    return fmt::format("add.s64 \t%demarc_a, {}, {};", body_.register_name(address.index),
                       address.offset());
  }

  // The same of an offset from the frame.
  [[nodiscard]] std::string from_frame(const Operand& address) const {
    const std::string reg = body_.register_name(address.index);
    const bool is_wide = !is_short(address);
    return fmt::format(
        "{} \t%demarc_a, {},{} %demarc_frame;\n\tadd.s64 \t%demarc_a, %demarc_a, {};",
        is_wide ? "add.s64" : "mad.wide.s32", reg, is_wide ? "" : " 1,", address.offset());
  }

  static constexpr std::size_t short_bytes = 4;  // per address

  const ColoredContext& context_;
  const Module& module_;
  const Function& function_;
  const Body& body_;
  const Frame& frame_;
  std::uint8_t windows_;
  std::vector<std::uint8_t> origins_;
  Callees callees_;
  bool short_locals_;
  std::set<std::uint32_t> messages_;  // instructions that take addresses of messages
  bool names_variables_ = false;      // of the module
  bool copies_ = false;               // by cp.async, whose lines go first
  std::uint32_t at_ = 0;              // the instruction that is looked at
  std::optional<SharedTranslations> shared_;
  std::vector<RegisterAccess> by_register_;
  std::string register_prologue_;
  RewrittenFunction out_;
};

}  // namespace

RewrittenFunction rewrite_function(const ColoredContext& context, std::uint32_t function,
                                   std::uint8_t windows) {
  return FunctionRewriter(context, function, windows).rewrite();
}

}  // namespace demarc::ptx
