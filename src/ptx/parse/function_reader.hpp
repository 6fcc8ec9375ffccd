// Reads functions: headers, scopes, and the statements of their bodies.
#pragma once

#include <deque>
#include <memory>

#include "parse/debug_reader.hpp"
#include "parse/declaration_reader.hpp"
#include "parse/mnemonic_table.hpp"
#include "parse/operand_check.hpp"
#include "parse/operand_reader.hpp"

namespace demarc::ptx {

class FunctionReader : public TextReader {
 public:
  FunctionReader(Reading& reading, DeclarationReader& declarations, DebugReader& debug);

  // From behind .entry or .func on.
  bool parse_function(bool is_entry, Declarator declarator);
  // The module is read.
  void seal() { pool_->seal(); }

 private:
  bool parse_parameters(std::vector<Variable>& parameters, Base base, bool is_entry);
  bool parse_parameter(std::vector<Variable>& parameters, Base base, bool is_entry);
  bool parse_performance_directives(Function& function);
  void parse_body();
  bool parse_statement();
  void open_scope();
  void close_scope();
  void finish_body(Function& function);
  void resolve_pending(std::uint32_t name, const Binding& binding);
  void report_unresolved();

  // statements.cpp
  bool parse_body_directive();
  bool keep_directive(const char* start);
  bool parse_label(std::string_view name, std::uint32_t line);
  bool parse_targets(TargetSet::Kind kind, std::string_view name, const char* start);
  void add_target(std::uint32_t set, std::string_view target, std::uint32_t offset);
  bool parse_instruction();
  const std::string& why_no_form_of(std::uint32_t mnemonic);
  void add_instruction(const Instruction& instruction);
  bool read_mnemonic(std::string_view& text);
  std::string_view join_mnemonic(std::string_view text);
  bool parse_operands(Instruction& instruction, const Mnemonic& mnemonic);
  bool parse_operand_list(Instruction& instruction, const Mnemonic& mnemonic);
  bool check_count(const Instruction& instruction, const Mnemonic& mnemonic);
  bool keep_verbatim(Instruction& instruction, const char* first);

  const Reading& reading_;
  DeclarationReader& declarations_;
  DebugReader& debug_;
  OperandReader operands_;
  OperandCheck check_;
  MnemonicTable mnemonics_;
  std::deque<std::string> no_form_;           // by mnemonic: why it is none, or empty
  std::shared_ptr<Pool> pool_;                // what function bodies end up in
  std::vector<std::uint32_t> pending_marks_;  // where pending_ stood when each scope opened
  std::size_t nested_ = 0;                    // scopes open within the body
};

}  // namespace demarc::ptx
