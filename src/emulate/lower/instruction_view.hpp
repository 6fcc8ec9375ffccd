// One instruction as it is written.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

#include "demarc/ptx/ir.hpp"
#include "lower/lookup.hpp"

namespace demarc::emulate {

class InstructionView {
 public:
  // `index` is that of the instruction in `body`.
  InstructionView(const ptx::Module& module, const ptx::Body& body, std::uint32_t index)
      : body_(body),
        instruction_(body.instructions[index]),
        words_(module.mnemonic(instruction_)),
        operands_(body.operands_of(instruction_)),
        index_(index) {}

  [[nodiscard]] std::uint32_t index() const { return index_; }
  [[nodiscard]] const ptx::Instruction& written() const { return instruction_; }
  [[nodiscard]] ptx::Opcode opcode() const { return instruction_.opcode; }
  [[nodiscard]] ptx::OpcodeGroup group() const { return ptx::info(opcode()).group; }
  [[nodiscard]] bool is_guarded() const { return instruction_.predicate != ptx::no_index; }

  [[nodiscard]] const ptx::Mnemonic& words() const { return words_; }
  [[nodiscard]] ptx::Type type(std::size_t i = 0) const { return words_.type(i); }
  [[nodiscard]] bool has(std::string_view modifier) const;
  [[nodiscard]] bool has_any(std::initializer_list<std::string_view> modifiers) const;
  // What the last row stands for whose modifier is written.
  template <class Value, std::size_t size>
  [[nodiscard]] std::optional<Value> chosen(const Rows<std::string_view, Value, size>& rows) const {
    std::optional<Value> out;
    for (const auto& [modifier, value] : rows) {
      if (has(modifier)) out = value;
    }
    return out;
  }

  // At the top level, the destination first where there is one.
  [[nodiscard]] std::span<const ptx::Operand> operands() const { return operands_; }
  [[nodiscard]] const ptx::Operand& operator[](std::size_t i) const { return operands_[i]; }
  // For a list, a vector or a pair.
  [[nodiscard]] std::span<const ptx::Operand> children(const ptx::Operand& operand) const {
    return body_.children(operand);
  }
  // The elements of a vector; of anything else, itself.
  [[nodiscard]] std::span<const ptx::Operand> elements(const ptx::Operand& operand) const;
  // The only element of a vector of one (`{ %r1 }`, as LLVM writes it); anything else itself.
  [[nodiscard]] const ptx::Operand& sole(const ptx::Operand& operand) const;
  // The first operand: both results of a pair, or the one there is.
  [[nodiscard]] std::span<const ptx::Operand> results() const;

 private:
  const ptx::Body& body_;
  const ptx::Instruction& instruction_;
  const ptx::Mnemonic& words_;
  std::span<const ptx::Operand> operands_;
  std::uint32_t index_ = 0;
};

}  // namespace demarc::emulate
