// Instructions and operands as text, appended to a string.
#pragma once

#include <string>

#include "demarc/ptx/ir.hpp"

namespace demarc::ptx {

class TextWriter {
 public:
  TextWriter(const Module& module, const Function& function, std::string& out)
      : module_(module), function_(function), body_(function.body), out_(out) {}

  void instruction(const Instruction& instruction);
  void operand(const Operand& operand);
  void mnemonic(const Mnemonic& mnemonic);

 private:
  void operands(std::span<const Operand> list);
  void reg(std::uint32_t number);
  void number(std::uint64_t value);
  void selector(const Operand& operand);
  void base(const Operand& operand);
  void offset(const Operand& operand);
  void immediate(const Operand& operand);

  const Module& module_;
  const Function& function_;
  const Body& body_;
  std::string& out_;
};

}  // namespace demarc::ptx
