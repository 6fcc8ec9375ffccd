// Follows addresses through the registers of a function.
#include "rewrite/colored/origins.hpp"

#include "demarc/ptx/def_use.hpp"

namespace demarc::ptx {
namespace {

std::uint8_t origin_of(StateSpace space) {
  switch (space) {
    case StateSpace::shared:
      return from_shared;
    case StateSpace::constant:
      return from_constant;
    case StateSpace::param:
      return from_param;
    case StateSpace::global:
    case StateSpace::local:
      return from_colored;
    default:
      return from_anywhere;
  }
}

// What a cvta or mapa makes; 0 for the address within a space (cvta.to.shared).
std::uint8_t made_by(const Mnemonic& mnemonic) {
  const std::uint8_t origin = origin_of(mnemonic.space);
  const bool generic = !mnemonic.has(Modifier::to);
  return generic || origin == from_colored ? origin : 0;
}

class Follower {
 public:
  Follower(const Module& module, const Function& function)
      : module_(module), function_(function), origins_(function.body.register_count) {}

  std::vector<std::uint8_t> follow() {
    do {
      changed_ = false;
      for (const Instruction& instruction : function_.body.instructions) {
        const std::uint8_t origin = result_of(instruction);
        for_each_written(function_.body, instruction, [&](std::uint32_t reg) { add(reg, origin); });
      }
    } while (changed_);
    return std::move(origins_);
  }

 private:
  void add(std::uint32_t reg, std::uint8_t origin) {
    // Less than an address holds is not an address.
    if (byte_size(function_.body.register_type(reg)) < 8) return;
    const auto all = static_cast<std::uint8_t>(origins_[reg] | origin);
    changed_ = changed_ || all != origins_[reg];
    origins_[reg] = all;
  }

  [[nodiscard]] std::uint8_t of(const Operand& operand) const {
    switch (operand.kind) {
      case OperandKind::reg:
        return origins_[operand.index];
      case OperandKind::immediate:
      case OperandKind::special:
        return 0;
      case OperandKind::symbol:
        return of_symbol(operand);
      default:
        return from_anywhere;
    }
  }

  // The address of a variable within its space; that of global and local memory is generic as well.
  [[nodiscard]] std::uint8_t of_symbol(const Operand& operand) const {
    StateSpace space = StateSpace::none;
    if (operand.base == Base::global) space = module_.variables[operand.index].space;
    if (operand.base == Base::variable) space = function_.body.variables[operand.index].space;
    const std::uint8_t origin = origin_of(space);
    return origin == from_colored ? origin : 0;
  }

  [[nodiscard]] std::uint8_t all_read(const Instruction& instruction) const {
    std::uint8_t all = 0;
    const auto operands = function_.body.operands_of(instruction);
    for (std::size_t i = 1; i < operands.size(); ++i) all |= of(operands[i]);
    return all;
  }

  [[nodiscard]] std::uint8_t result_of(const Instruction& instruction) const {
    const auto operands = function_.body.operands_of(instruction);
    const Mnemonic& mnemonic = module_.mnemonic(instruction);
    switch (instruction.opcode) {
      case Opcode::cvta:
        return made_by(mnemonic);
      case Opcode::mapa:
        return mnemonic.space == StateSpace::none ? std::uint8_t{from_cluster} : std::uint8_t{0};
      case Opcode::mov:
      case Opcode::add:
      case Opcode::sub:
      case Opcode::and_:
      case Opcode::or_:
      case Opcode::xor_:
      case Opcode::not_:
      case Opcode::min:
      case Opcode::max:
      case Opcode::selp:
      case Opcode::slct:
      case Opcode::cvt:
        return all_read(instruction);
      case Opcode::mad:
        return operands.size() > 3 ? of(operands[3]) : std::uint8_t{from_anywhere};
      case Opcode::mul:
        return 0;
      case Opcode::shl:
      case Opcode::shr:
        return all_read(instruction) == 0 ? std::uint8_t{0} : std::uint8_t{from_anywhere};
      case Opcode::ld:
        return mnemonic.space == StateSpace::param && function_.is_entry &&
                       reads_parameter(instruction)
                   ? from_colored
                   : from_anywhere;
      default:
        return from_anywhere;
    }
  }

  // For the kernel itself; a call's results are in the same space.
  [[nodiscard]] bool reads_parameter(const Instruction& instruction) const {
    for (const Operand& operand : function_.body.operands_of(instruction)) {
      if (operand.kind == OperandKind::address) return operand.base == Base::parameter;
    }
    return false;
  }

  const Module& module_;
  const Function& function_;
  std::vector<std::uint8_t> origins_;
  bool changed_ = false;
};

}  // namespace

std::vector<std::uint8_t> origins_of(const Module& module, const Function& function) {
  return Follower(module, function).follow();
}

std::uint8_t windows_made(const Module& module, const Function& function) {
  std::uint8_t made = 0;
  for (const Instruction& instruction : function.body.instructions) {
    const Mnemonic& mnemonic = module.mnemonic(instruction);
    if (instruction.opcode == Opcode::cvta) made |= made_by(mnemonic);
    if (instruction.opcode == Opcode::mapa && mnemonic.space == StateSpace::none) {
      made |= from_cluster;
    }
  }
  return made & (from_shared | from_cluster | from_constant | from_param);
}

}  // namespace demarc::ptx
