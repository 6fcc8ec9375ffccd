// What each operand of an opcode has to be (operands.def), by mnemonic.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

struct OperandRule {
  enum class What : std::uint8_t { unchecked, typed, address, constant, pointer, label, targets };

  What what = What::unchecked;
  Type type = Type::none;        // what `typed` wants
  std::uint8_t type_number = 0;  // where it is one of the mnemonic's
  bool is_exact = false;         // integer and untyped registers alone
  bool is_written = false;
  bool is_twice_as_wide = false;
  bool takes_wider = false;
  bool takes_sink = false;
  bool takes_pair = false;
  bool needs_pair = false;
  bool takes_variable = false;  // the address of one
  bool takes_special = false;
  bool takes_predicate = false;
  bool needs_register = false;
  bool may_be_missing = false;
  std::uint64_t least = 0;                                         // the smallest constant
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  // the largest constant
  bool at_most_as_before = false;  // at most the constant in front of it
  std::uint64_t multiple_of = 1;
  std::array<std::uint64_t, 3> choices{};  // 0: none
};

// Empty where no row of the table is about the opcode. The types are those of the mnemonic.
[[nodiscard]] std::vector<OperandRule> operand_rules(const Mnemonic& mnemonic);

// Whether a register of type `have` may stand where the rule is about.
[[nodiscard]] bool takes_register(const OperandRule& rule, Type have);

}  // namespace demarc::ptx
