// The parser, a class whose members are spread over parse_*.cpp by what they read. Functions that
// read something return false after they have reported what is wrong; the caller that owns a
// statement then calls recover().
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/ptx/forms.hpp"
#include "demarc/ptx/parser.hpp"
#include "parse/constant_expression.hpp"
#include "parse/cursor.hpp"
#include "parse/declaration_rules.hpp"
#include "parse/initialiser_reader.hpp"
#include "parse/mnemonic_table.hpp"
#include "parse/name_table.hpp"
#include "parse/operand_rules.hpp"
#include "parse/reporter.hpp"

namespace demarc::ptx {

// A name used before anything of that name was seen: a label further down, as a rule. Those of one
// name form a chain from the newest (NameTable::pending).
struct PendingReference {
  enum class Kind : std::uint8_t { operand, target };
  Kind kind = Kind::operand;
  std::uint32_t a = 0;  // operand: Body::operands; target: Body::targets
  std::uint32_t b = 0;  // target: which of them
  std::uint32_t name = 0;
  std::uint32_t offset = 0;  // in the text
  std::uint32_t older = no_index;
  bool settled = false;     // resolved, or of a statement that was given up
  bool names_label = true;  // the instruction branches, or is not known
};

// Registers of a stem with one or two letters (%r<100>), as long as no stem changes its meaning.
struct PlainStem {
  std::uint32_t version = no_index;  // NameTable::stem_version() it was looked up at
  std::uint32_t first = 0;
  std::uint32_t count = 0;  // 0: there is none, or only the general reader can tell
  Type type = Type::none;
};

// What debug directives refer to each other by, over the whole module.
struct DebugData {
  struct Place {
    std::uint32_t file = 0;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the 0 that a comparison is compared with
    auto operator<=>(const Place&) const = default;
  };
  struct InlinedName {
    std::string_view label;
    std::uint32_t offset = 0;  // in the text
  };
  std::set<std::uint32_t> file_numbers;
  std::set<std::string_view> labels;  // of all sections
  std::vector<Place> recent_places;   // of .loc, not in `places` yet
  std::set<Place> places;             // brought up to date where code is inlined
  std::vector<InlinedName> inlined_names;
};

class Parser {
 public:
  Parser(Module& module, std::string_view text, const ParseOptions& options);

  void parse_module();
  [[nodiscard]] Diagnostics take_diagnostics() { return reporter_.take(); }

 private:
  // What stands before a declaration: .visible, .extern, ...
  struct Declarator {
    Linkage linkage = Linkage::none;
    const char* start = nullptr;
    std::uint32_t align = 0;  // bytes, where .align stands in front of the state space
  };

  // parse_state.cpp
  bool fail(std::string message);  // at the cursor
  bool fail_at(std::uint32_t offset, std::string message);
  void unsupported(std::uint32_t offset, std::string message);
  bool expect(char c, std::string_view after);
  void recover();
  void skip_block();                        // from behind a '{' to behind its '}'
  [[nodiscard]] std::string found() const;  // "found 'x'" for messages
  std::string_view word_after_dot();        // ".reg" -> "reg", cursor behind it; empty when none
  // A literal or WARP_SZ; expressions stand in operands and initialisers alone.
  bool read_uint(std::uint64_t most, std::string_view what, std::uint64_t& value);
  bool read_string(std::string_view& text);
  [[nodiscard]] std::string_view text_since(const char* first) const;

  // parse_module.cpp
  void parse_item();
  bool parse_directive(std::string_view word, const char* start);
  bool parse_version();
  bool parse_target();
  bool parse_address_size();
  bool parse_verbatim(const char* start);
  bool parse_declaration(std::string_view word, Declarator declarator);
  void finish_module();
  void check_parameter_space(const Function& kernel);
  void check_constant_memory();
  void name_what_stands();
  void check_preamble(std::string_view word, const char* start);

  // parse_function.cpp
  bool parse_function(bool is_entry, Declarator declarator);
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

  // parse_debug.cpp
  void check_characters();
  bool parse_file();
  bool parse_location();
  bool parse_inlining(const char* start);
  bool parse_section(const char* start);
  bool parse_section_line();
  bool parse_section_label(std::string_view name);
  bool parse_section_numbers(Type type);
  bool parse_section_address(Type type);
  bool read_debug_name(std::string_view& name);
  bool read_section_name(std::string_view& name);
  void check_inlined_names();

  // parse_statement.cpp
  bool parse_body_directive();
  bool parse_label(std::string_view name, std::uint32_t line);
  bool parse_targets(TargetSet::Kind kind, std::string_view name, const char* start);
  void add_target(std::uint32_t set, std::string_view target, std::uint32_t offset);
  bool parse_instruction();
  const std::string& why_no_form_of(std::uint32_t mnemonic);
  void add_instruction(const Instruction& instruction);
  bool parse_guard(Instruction& instruction);
  bool read_mnemonic(std::string_view& text);
  std::string_view join_mnemonic(std::string_view text);
  bool parse_operands(Instruction& instruction, const Mnemonic& mnemonic);
  bool parse_operand_list(Instruction& instruction, const Mnemonic& mnemonic);
  bool check_operands(const Instruction& instruction, const Mnemonic& mnemonic);
  bool keep_verbatim(Instruction& instruction, const char* first);

  // operand_forms.cpp
  bool check_typed_operands(const Instruction& instruction, const Mnemonic& mnemonic);
  [[nodiscard]] std::size_t elements_of(const Operand& operand) const;

  // operand_kinds.cpp: why an operand is none that the rule is about; empty when it is
  const std::vector<OperandRule>& operand_rules_of(std::uint32_t mnemonic);
  bool check_operand_rules(const Instruction& instruction, const Mnemonic& mnemonic);
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

  // parse_plain.cpp
  bool parse_plain_guard(Instruction& instruction);
  bool parse_plain_operands(Instruction& instruction, const KnownMnemonic& mnemonic);
  bool read_plain_operand(const char*& at, Operand& operand);
  bool read_plain_address(const char*& at, Operand& operand);
  bool read_plain_literal(const char*& at, Operand& operand);
  const PlainStem* read_plain_register(const char*& at, std::uint32_t& reg);
  void renew(PlainStem& stem, std::string_view name);

  // parse_operand.cpp
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
  bool find_numbered_register(std::string_view name, std::uint32_t& reg);
  void resolve_name(std::string_view name, Operand& operand);
  void refer_later(std::uint32_t name);
  std::uint32_t flush(std::size_t first);  // scratch_ from `first` on -> body_.operands

  // parse_variable.cpp
  bool parse_registers(std::vector<RegisterRange>& ranges, bool in_body);
  bool parse_variables(StateSpace space, Declarator declarator, bool in_body);
  bool parse_variable_type(Variable& variable);
  bool read_alignment(std::uint32_t& align);
  bool parse_leading_alignment(Declarator& declarator, std::string_view& word);
  bool parse_declarator(Variable& variable);
  bool check_size(const Variable& variable);
  bool parse_initialiser(Variable& variable);
  ConstantError check_symbol(const InitialAddress& address);
  void check_variable(const Variable& variable, DeclaredIn place);
  bool add_variable(const Variable& variable, bool in_body);
  bool parse_range_count(std::uint64_t& count);
  bool declare(std::string_view name, Base base, std::uint32_t index);
  bool declare_register(RegisterRange range, std::vector<RegisterRange>& ranges,
                        std::uint32_t& total);
  void bind_registers(const std::vector<RegisterRange>& ranges, std::uint32_t index);

  Module& module_;
  Cursor cursor_;
  ParseOptions options_;
  Reporter reporter_;
  NameTable names_;
  MnemonicTable mnemonics_;
  FormLimits form_limits_;
  std::deque<std::string> no_form_;                     // by mnemonic: why it is none, or empty
  std::deque<std::vector<OperandRule>> operand_rules_;  // by mnemonic
  std::shared_ptr<Pool> pool_;                          // what function bodies end up in
  std::array<PlainStem, 1024> plain_stems_;
  Body body_;                     // of the function being read; its storage is used again
  std::vector<Operand> scratch_;  // operands whose place in body_ is not known yet
  std::vector<PendingReference> pending_;
  std::vector<std::uint32_t> pending_marks_;  // where pending_ stood when each scope opened
  std::uint32_t module_register_count_ = 0;
  std::size_t nested_ = 0;  // scopes open within the body
  bool in_function_ = false;
  bool in_call_ = false;             // the operands of a call are being read
  bool takes_label_ = false;         // those of a branch, or of what is not understood
  std::uint32_t unresolved_at_ = 0;  // where the last name that is not known yet stands
  DebugData debug_;
  bool saw_version_ = false;
  bool saw_target_ = false;
  bool reported_preamble_ = false;
};

}  // namespace demarc::ptx
