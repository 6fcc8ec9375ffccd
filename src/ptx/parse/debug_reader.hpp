// Reads what debuggers and profilers use: source files, lines with inlining, DWARF sections.
#pragma once

#include <compare>
#include <set>

#include "parse/reading.hpp"

namespace demarc::ptx {

class DebugReader : public TextReader {
 public:
  using TextReader::TextReader;

  void check_characters();
  bool parse_file();
  bool parse_location();
  bool parse_section(const char* start);
  // At the end of the module.
  void check_inlined_names();

 private:
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

  bool parse_inlining(const char* start);
  bool parse_section_line();
  bool parse_section_label(std::string_view name);
  bool parse_section_numbers(Type type);
  bool parse_section_address(Type type);
  bool read_debug_name(std::string_view& name);
  bool read_section_name(std::string_view& name);

  std::set<std::uint32_t> file_numbers_;
  std::set<std::string_view> labels_;  // labels of all sections
  std::vector<Place> recent_places_;   // places of .loc, not in `places_` yet
  std::set<Place> places_;             // brought up to date where code is inlined
  std::vector<InlinedName> inlined_names_;
};

}  // namespace demarc::ptx
