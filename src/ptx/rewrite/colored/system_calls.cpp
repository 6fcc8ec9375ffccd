// Follows the strings of assertions from where their addresses are taken to the call.
#include "rewrite/colored/system_calls.hpp"

#include <algorithm>
#include <set>

#include "demarc/ptx/def_use.hpp"
#include "parse/reporter.hpp"

namespace demarc::ptx {
namespace {

class Messages {
 public:
  Messages(const Module& module, const Function& function)
      : module_(module), body_(function.body), cfg_(body_), def_use_(body_, cfg_) {}

  MessageUses find() {
    for (const Instruction& instruction : body_.instructions) add_call(instruction);
    for (std::uint32_t i = 0; i < body_.instructions.size(); ++i) add_store(i);
    for (const std::uint32_t reg : registers_) check_uses(reg);
    return {{strings_.begin(), strings_.end()}, std::move(refusals_)};
  }

 private:
  void refuse(const Instruction& instruction, std::string_view why) {
    refusals_.push_back(
        {instruction.line, fmt::format("'{}' {}", excerpt(module_.text_of(instruction)), why)});
  }

  // The variables by which arguments are handed over.
  void add_call(const Instruction& instruction) {
    if (instruction.opcode != Opcode::call) return;
    const SystemCall called = system_call_of(module_, body_, instruction);
    if (called != SystemCall::assertion && called != SystemCall::printing) return;
    bool behind_name = false;
    for (const Operand& operand : body_.operands_of(instruction)) {
      if (operand.base == Base::function) behind_name = true;
      if (!behind_name || operand.kind != OperandKind::list) continue;
      for (const Operand& argument : body_.children(operand)) {
        if (argument.base == Base::variable) {
          (called == SystemCall::assertion ? asserted_ : printed_).insert(argument.index);
        } else if (called == SystemCall::assertion) {
          refuse(instruction, "passes its arguments in a way that cannot be followed");
        }
      }
    }
  }

  // What is stored into such a variable.
  void add_store(std::uint32_t at) {
    const Instruction& instruction = body_.instructions[at];
    const auto operands = body_.operands_of(instruction);
    if (instruction.opcode != Opcode::st || operands.size() < 2) return;
    if (operands[0].base != Base::variable) return;
    if (printed_.contains(operands[0].index)) stores_.insert(at);
    if (!asserted_.contains(operands[0].index)) return;
    stores_.insert(at);
    const Mnemonic& mnemonic = module_.mnemonic(instruction);
    if (byte_size(mnemonic.type()) >= 8) follow(instruction, at, operands[1]);
  }

  void follow(const Instruction& store, std::uint32_t at, const Operand& value) {
    switch (value.kind) {
      case OperandKind::immediate:
        return;
      case OperandKind::symbol:
        if (value.base == Base::global) {
          strings_.insert(at);
          return;
        }
        break;
      case OperandKind::reg:
        if (!registers_.insert(value.index).second) return;
        for (const std::uint32_t definition : def_use_.definitions(value.index)) {
          follow_definition(store, definition);
        }
        return;
      default:
        break;
    }
    refuse(store,
           "passes an address to an assertion that is not the address of a string of the module");
  }

  void follow_definition(const Instruction& store, std::uint32_t at) {
    const Instruction& instruction = body_.instructions[at];
    const bool moves = instruction.opcode == Opcode::mov || instruction.opcode == Opcode::add ||
                       instruction.opcode == Opcode::selp ||
                       (instruction.opcode == Opcode::cvta &&
                        module_.mnemonic(instruction).space == StateSpace::global);
    if (!moves) {
      refuse(store,
             "passes an address to an assertion that is not the address of a string of the module");
      return;
    }
    moves_.insert(at);
    const auto operands = body_.operands_of(instruction);
    // The last operand of selp chooses.
    const std::size_t end = operands.size() - (instruction.opcode == Opcode::selp ? 1 : 0);
    for (std::size_t i = 1; i < end; ++i) follow(store, at, operands[i]);
  }

  // A string's own address must not get anywhere else.
  void check_uses(std::uint32_t reg) {
    for (const std::uint32_t use : def_use_.uses(reg)) {
      if (moves_.contains(use) || stores_.contains(use)) continue;
      refuse(body_.instructions[use],
             "uses the address of a string that is passed to an assertion");
    }
  }

  const Module& module_;
  const Body& body_;
  Cfg cfg_;
  DefUse def_use_;
  std::set<std::uint32_t> asserted_;   // Body::variables
  std::set<std::uint32_t> printed_;    // Body::variables
  std::set<std::uint32_t> stores_;     // Body::instructions
  std::set<std::uint32_t> moves_;      // Body::instructions
  std::set<std::uint32_t> strings_;    // Body::instructions
  std::set<std::uint32_t> registers_;  // that hold the address of a string
  std::vector<ColoredRefusal> refusals_;
};

}  // namespace

SystemCall system_call_of(const Module& module, const Body& body, const Instruction& call) {
  for (const Operand& operand : body.operands_of(call)) {
    if (operand.base != Base::function) continue;
    const Function& called = module.functions[operand.index];
    if (called.definition != no_index) return SystemCall::none;
    if (called.name == "__assertfail") return SystemCall::assertion;
    if (called.name == "malloc" || called.name == "free") return SystemCall::heap;
    return called.name == "vprintf" ? SystemCall::printing : SystemCall::other;
  }
  return SystemCall::none;
}

MessageUses message_uses_of(const Module& module, const Function& function) {
  const auto& instructions = function.body.instructions;
  const bool asserts =
      std::any_of(instructions.begin(), instructions.end(), [&](const Instruction& instruction) {
        return instruction.opcode == Opcode::call &&
               system_call_of(module, function.body, instruction) == SystemCall::assertion;
      });
  return asserts ? Messages(module, function).find() : MessageUses{};
}

}  // namespace demarc::ptx
