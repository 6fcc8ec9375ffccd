// Checks operands against their mnemonic: how many there are, how wide, and of which kind
// (operands.def).
#pragma once

#include <deque>
#include <span>

#include "parse/operand_rules.hpp"
#include "parse/reading.hpp"

namespace demarc::ptx {

class OperandCheck : public TextReader {
 public:
  using TextReader::TextReader;

  // False: what is wrong is reported.
  bool check(const Instruction& instruction, const Mnemonic& mnemonic);

 private:
  [[nodiscard]] std::size_t elements_of(const Operand& operand) const;

  // operand_kinds.cpp: why an operand is none that the rule is about; empty when it is
  const std::vector<OperandRule>& operand_rules_of(std::uint32_t mnemonic);
  bool check_rules(const Instruction& instruction, const Mnemonic& mnemonic);
  [[nodiscard]] std::string why_no_operand(const OperandRule& rule, const Mnemonic& mnemonic,
                                           const Operand& operand) const;
  [[nodiscard]] std::string why_no_register(const OperandRule& rule, const Mnemonic& mnemonic,
                                            const Operand& operand) const;
  [[nodiscard]] std::string why_no_symbol(const OperandRule& rule, const Mnemonic& mnemonic,
                                          const Operand& operand) const;
  [[nodiscard]] std::string why_no_address(const Mnemonic& mnemonic, const Operand& operand,
                                           std::size_t number) const;
  [[nodiscard]] std::string why_no_vector(const OperandRule& rule, const Mnemonic& mnemonic,
                                          const Operand& operand) const;
  [[nodiscard]] TypeKind kind_of_element(const Operand& element) const;
  [[nodiscard]] std::string why_no_elements(OperandRule rule, const Mnemonic& mnemonic,
                                            std::span<const Operand> elements) const;
  [[nodiscard]] StateSpace space_of(const Operand& operand) const;

  std::deque<std::vector<OperandRule>> operand_rules_;  // by mnemonic
};

}  // namespace demarc::ptx
