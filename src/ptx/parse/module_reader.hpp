// Reads a module: everything at its scope, and by other readers what stands in it.
#pragma once

#include "parse/function_reader.hpp"

namespace demarc::ptx {

class ModuleReader : public TextReader {
 public:
  explicit ModuleReader(Reading& reading)
      : TextReader(reading),
        debug_(reading),
        declarations_(reading),
        functions_(reading, declarations_, debug_) {}

  void parse_module();

 private:
  void parse_item();
  bool parse_directive(std::string_view word, const char* start);
  bool parse_version();
  bool parse_target();
  bool parse_address_size();
  bool keep_directive(const char* start);
  bool parse_declaration(std::string_view word, Declarator declarator);
  void finish_module();
  void check_parameter_space(const Function& kernel);
  void check_constant_memory();
  void name_what_stands();
  void check_preamble(std::string_view word, const char* start);

  DebugReader debug_;
  DeclarationReader declarations_;
  FunctionReader functions_;
  bool saw_version_ = false;
  bool saw_target_ = false;
  bool reported_preamble_ = false;
};

}  // namespace demarc::ptx
