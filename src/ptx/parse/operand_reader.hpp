// Reads operands of every form, and resolves the names in them.
#pragma once

#include <array>

#include "parse/mnemonic_table.hpp"
#include "parse/reading.hpp"

namespace demarc::ptx {

// Registers of a stem with one or two letters (%r<100>), as long as no stem changes its meaning.
struct PlainStem {
  std::uint32_t version = no_index;  // NameTable::stem_version() it was looked up at
  std::uint32_t first = 0;
  std::uint32_t count = 0;  // 0: there is none, or only the general reader can tell
  Type type = Type::none;
};

class OperandReader : public TextReader {
 public:
  using TextReader::TextReader;

  // `@p` or `@!p`, from the '@' on.
  bool read_guard(Instruction& instruction) {
    return parse_plain_guard(instruction) || parse_guard(instruction);
  }
  // All operands and the semicolon, in a fast way that most instructions allow; false: the cursor
  // has not moved.
  bool parse_plain_operands(Instruction& instruction, const KnownMnemonic& mnemonic);
  // A list, up to what follows it. It is held until keep() makes it a part of the body, which gives
  // the place of the first.
  bool read_list(const Mnemonic& mnemonic);
  [[nodiscard]] std::size_t held() const { return scratch_.size(); }
  std::uint32_t keep() { return flush(0); }

 private:
  bool parse_guard(Instruction& instruction);

  // plain_operands.cpp
  bool parse_plain_guard(Instruction& instruction);
  bool read_plain_operand(const char*& at, Operand& operand);
  bool read_plain_address(const char*& at, Operand& operand);
  bool read_plain_literal(const char*& at, Operand& operand);
  const PlainStem* read_plain_register(const char*& at, std::uint32_t& reg);
  void renew(PlainStem& stem, std::string_view name);

  [[nodiscard]] bool begins_name() const;
  bool parse_operand(Operand& operand, int depth);
  bool parse_named(Operand& operand, int depth);
  bool parse_immediate(Operand& operand);
  bool parse_group(Operand& operand, OperandKind kind, char close, int depth);
  bool parse_bracket(Operand& operand, int depth);
  bool parse_address(Operand& operand);
  bool parse_offset(Operand& operand);
  bool parse_selector(Operand& operand);
  bool parse_element(Operand& operand, int depth);
  bool parse_pair(Operand& operand);
  Operand both(const Operand& first, const Operand& second, OperandKind kind);
  bool find_numbered_register(std::string_view name, std::uint32_t& reg);
  void resolve_name(std::string_view name, Operand& operand);
  void refer_later(std::uint32_t name);
  std::uint32_t flush(std::size_t first);  // scratch_ from `first` on -> body_.operands

  std::array<PlainStem, 1024> plain_stems_;
  std::vector<Operand> scratch_;     // operands whose place in body_ is not known yet
  bool in_call_ = false;             // the operands of a call are being read
  bool takes_label_ = false;         // those of a branch, or of what is not understood
  std::uint32_t unresolved_at_ = 0;  // where the last name that is not known yet stands
};

}  // namespace demarc::ptx
