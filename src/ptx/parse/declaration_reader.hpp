// Reads declarations of registers and variables, with their initialisers.
#pragma once

#include "parse/declaration_rules.hpp"
#include "parse/initialiser_reader.hpp"
#include "parse/reading.hpp"

namespace demarc::ptx {

// What stands before a declaration: .visible, .extern, ...
struct Declarator {
  Linkage linkage = Linkage::none;
  const char* start = nullptr;
  std::uint32_t align = 0;  // bytes, where .align stands in front of the state space
};

class DeclarationReader : public TextReader {
 public:
  explicit DeclarationReader(Reading& reading)
      : TextReader(reading), module_register_count_(reading.module_register_count) {}

  bool parse_registers(std::vector<RegisterRange>& ranges, bool in_body);
  bool parse_variables(StateSpace space, Declarator declarator, bool in_body);
  bool parse_variable_type(Variable& variable);
  bool parse_leading_alignment(Declarator& declarator, std::string_view& word);
  bool parse_declarator(Variable& variable);
  void check_variable(const Variable& variable, DeclaredIn place);
  bool parse_range_count(std::uint64_t& count);
  bool declare(std::string_view name, Base base, std::uint32_t index);
  bool declare_register(RegisterRange range, std::vector<RegisterRange>& ranges,
                        std::uint32_t& total);
  void bind_registers(const std::vector<RegisterRange>& ranges, std::uint32_t index);

 private:
  bool read_alignment(std::uint32_t& align);
  bool check_size(const Variable& variable);
  bool parse_initialiser(Variable& variable);
  ConstantError check_symbol(const InitialAddress& address);
  bool add_variable(const Variable& variable, bool in_body);

  std::uint32_t& module_register_count_;
};

}  // namespace demarc::ptx
