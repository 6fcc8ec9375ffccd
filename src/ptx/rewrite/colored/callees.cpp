// Follows the addresses of functions through registers to the calls that take them.
#include "rewrite/colored/callees.hpp"

#include <algorithm>

#include "demarc/ptx/def_use.hpp"

namespace demarc::ptx {

std::string_view Callees::objection(const Instruction& call) {
  if (are_known(call)) return {};
  return "calls a function whose address cannot be followed, so nothing tells how much it keeps on "
         "the driver's stack, which has no colour";
}

bool Callees::are_known(const Instruction& call) {
  const auto operands = body_.operands_of(call);
  // In front of the called function are the results, behind it arguments and what it may be.
  const auto called = std::find_if(operands.begin(), operands.end(), [](const Operand& operand) {
    return operand.kind != OperandKind::list;
  });
  if (called == operands.end()) return false;
  if (called->base == Base::function) return true;
  if (followed_.empty()) follow_registers();
  return is_followed(*called);
}

// A register is followed where every instruction that writes it moves the address of a function.
void Callees::follow_registers() {
  std::vector<bool> written(body_.register_count, false);
  for (const Instruction& instruction : body_.instructions) {
    for_each_written(body_, instruction, [&](std::uint32_t reg) { written[reg] = true; });
  }
  followed_ = std::move(written);
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& instruction : body_.instructions) {
      const auto operands = body_.operands_of(instruction);
      const bool moves = instruction.opcode == Opcode::mov || instruction.opcode == Opcode::selp;
      const std::size_t values = instruction.opcode == Opcode::selp ? 2 : 1;
      const bool holds =
          moves && operands.size() > values &&
          std::all_of(operands.begin() + 1,
                      operands.begin() + 1 + static_cast<std::ptrdiff_t>(values),
                      [this](const Operand& operand) { return is_followed(operand); });
      if (holds) continue;
      for_each_written(body_, instruction, [&](std::uint32_t reg) {
        changed = changed || followed_[reg];
        followed_[reg] = false;
      });
    }
  }
}

bool Callees::is_followed(const Operand& operand) const {
  if (operand.kind == OperandKind::reg) return followed_[operand.index];
  return operand.kind == OperandKind::symbol && operand.base == Base::function &&
         operand.offset() == 0 && module_.functions[operand.index].definition != no_index;
}

}  // namespace demarc::ptx
