// Parses what debuggers and profilers read: source files, lines with inlining, DWARF sections.
#include "parse/debug_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "parse/constant_expression.hpp"

namespace demarc::ptx {
namespace {

constexpr std::uint64_t max_number_of_line = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t max_number_of_file = std::numeric_limits<std::uint64_t>::max();

// The words that `ptxas` reads as its own behind a dot, so that no section has them as its name.
bool is_word_of_ptx(std::string_view word) {
  constexpr std::string_view directives[] = {"section",
                                             "file",
                                             "loc",
                                             "target",
                                             "address_size",
                                             "entry",
                                             "func",
                                             "visible",
                                             "extern",
                                             "weak",
                                             "common",
                                             "alias",
                                             "pragma",
                                             "align",
                                             "ptr",
                                             "attribute",
                                             "managed",
                                             "unified",
                                             "noreturn",
                                             "maxntid",
                                             "reqntid",
                                             "maxnreg",
                                             "minnctapersm",
                                             "maxnctapersm",
                                             "explicitcluster",
                                             "reqnctapercluster",
                                             "maxclusterrank",
                                             "branchtargets",
                                             "calltargets",
                                             "callprototype",
                                             "byte",
                                             "4byte",
                                             "quad",
                                             "v2",
                                             "v4",
                                             "L1",
                                             "L2"};
  return find_type(word) != Type::none || find_state_space(word) != StateSpace::none ||
         std::find(std::begin(directives), std::end(directives), word) != std::end(directives);
}

// The type of debug data, `.byte` and the like among them; none for what cannot stand there.
Type type_of_data(std::string_view word) {
  if (word == "b8" || word == "byte") return Type::b8;
  if (word == "b16") return Type::b16;
  if (word == "b32" || word == "4byte") return Type::b32;
  return word == "b64" || word == "quad" ? Type::b64 : Type::none;
}

}  // namespace

// PTX is ASCII throughout, in strings and comments too.
void DebugReader::check_characters() {
  const char* found = std::find_if(cursor_.begin, cursor_.end,
                                   [](char c) { return static_cast<unsigned char>(c) > 0x7F; });
  if (found != cursor_.end) {
    fail_at(cursor_.offset_of(found),
            "PTX is ASCII text, also in comments, but this character is not");
  }
}

// .file number "name" [, time [, size]]
bool DebugReader::parse_file() {
  SourceFile file;
  std::uint64_t number = 0;
  cursor_.skip();
  const std::uint32_t offset = cursor_.offset();
  if (!read_uint(max_number_of_line, "the number of a '.file'", number)) return false;
  file.number = static_cast<std::uint32_t>(number);
  if (!read_string(file.path)) return false;
  const char* behind = cursor_.at;
  const std::uint32_t line_behind = cursor_.line;
  if (cursor_.take(',')) {
    const char* first = cursor_.at;
    std::uint64_t ignored = 0;
    if (!read_uint(max_number_of_file, "a timestamp", ignored)) return false;
    if (cursor_.take(',') && !read_uint(max_number_of_file, "a file size", ignored)) return false;
    file.tail = text_since(first);
  } else {
    cursor_.at = behind;
    cursor_.line = line_behind;
  }
  if (!file_numbers_.insert(file.number).second) {
    return fail_at(offset, fmt::format("'.file' {} stands twice", file.number));
  }
  module_.items.push_back({ItemKind::file, static_cast<std::uint32_t>(module_.files.size())});
  module_.files.push_back(file);
  return true;
}

// .loc file line column [, function_name label [+offset], inlined_at file line column]
bool DebugReader::parse_location() {
  Location location;
  for (std::uint32_t* field : {&location.file, &location.line, &location.column}) {
    std::uint64_t value = 0;
    if (!read_uint(max_number_of_line, "a number of '.loc'", value)) return false;
    *field = static_cast<std::uint32_t>(value);
  }
  const char* behind = cursor_.at;
  const std::uint32_t line_behind = cursor_.line;
  cursor_.skip();
  if (cursor_.is_next(',')) {
    const char* first = cursor_.at;
    ++cursor_.at;
    if (!parse_inlining(first)) return false;
    location.tail = text_since(first);
  } else if (std::string_view(cursor_.at, static_cast<std::size_t>(cursor_.end - cursor_.at))
                 .starts_with("function_name")) {
    return fail("',' was expected before 'function_name'");
  } else {
    cursor_.at = behind;
    cursor_.line = line_behind;
  }
  recent_places_.push_back({location.file, location.line, location.column});
  body_.statements.push_back(
      {StatementKind::location, static_cast<std::uint32_t>(body_.locations.size())});
  body_.locations.push_back(location);
  return true;
}

bool DebugReader::parse_inlining(const char* start) {
  cursor_.skip();
  if (cursor_.name() != "function_name") return fail("'function_name' was expected in '.loc'");
  cursor_.skip();
  const std::uint32_t offset = cursor_.offset();
  std::string_view label;
  if (cursor_.is_next('.')) {
    if (!read_section_name(label)) return false;
    if (label != "debug_str") {
      return fail_at(offset, "the name of an inlined function stands in '.debug_str'");
    }
  } else {
    if (!read_debug_name(label)) return false;
    inlined_names_.push_back({label, offset});
  }
  std::uint64_t value = 0;
  if (cursor_.take('+') && !read_uint(max_number_of_file, "an offset", value)) return false;
  if (!expect(',', "the function name")) return false;
  cursor_.skip();
  if (cursor_.name() != "inlined_at") return fail("'inlined_at' was expected in '.loc'");
  Place place;
  for (std::uint32_t* field : {&place.file, &place.line, &place.column}) {
    if (!read_uint(max_number_of_line, "a number of '.loc'", value)) return false;
    *field = static_cast<std::uint32_t>(value);
  }
  places_.insert(recent_places_.begin(), recent_places_.end());
  recent_places_.clear();
  if (form_limits_.version < 70) {
    return fail_at(cursor_.offset_of(start), "'.loc' has 'inlined_at' from PTX 7.0 on");
  }
  if (places_.contains(place)) return true;
  return fail_at(cursor_.offset_of(start),
                 fmt::format("'inlined_at {} {} {}' needs a '.loc' of that place before it",
                             place.file, place.line, place.column));
}

void DebugReader::check_inlined_names() {
  for (const InlinedName& name : inlined_names_) {
    if (labels_.contains(name.label)) continue;
    fail_at(name.offset, fmt::format("'{}' is not a label of a section", excerpt(name.label, 60)));
  }
}

// `.section .debug_info { .b8 1,2  .b32 label ... }`, kept as it is.
bool DebugReader::parse_section(const char* start) {
  cursor_.skip();
  std::string_view name;
  if (!read_section_name(name)) return false;
  if (!expect('{', "the name of a section")) return false;
  while (!cursor_.take('}')) {
    if (!parse_section_line()) {
      skip_block();
      return true;
    }
  }
  module_.items.push_back({ItemKind::section, static_cast<std::uint32_t>(module_.verbatim.size())});
  module_.verbatim.push_back(text_since(start));
  return true;
}

// `label:`, or data of one type: `.b8 1, -2`, `.b32 label+4`, `.b64 label-label`, `.b32
// .section+4`.
bool DebugReader::parse_section_line() {
  if (cursor_.done()) return fail("'}' was expected at the end of a section, " + found());
  std::string_view name;
  if (!cursor_.is_next('.')) {
    return read_debug_name(name) && parse_section_label(name);
  }
  const std::uint32_t offset = cursor_.offset();
  const std::string_view word = word_after_dot();
  const Type type = type_of_data(word);
  if (type == Type::none) {
    return fail_at(offset, fmt::format("'.{}' is not a type of debug data, which are .b8, .b16, "
                                       ".b32 and .b64",
                                       excerpt(word, 40)));
  }
  cursor_.skip();
  const bool is_number = cursor_.is_next('-') || Cursor::is(cursor_.peek(), char_digit);
  return is_number ? parse_section_numbers(type) : parse_section_address(type);
}

bool DebugReader::parse_section_label(std::string_view name) {
  if (!expect(':', "a label of a section")) return false;
  if (!labels_.insert(name).second) {
    return fail_at(cursor_.offset_of(name.data()),
                   fmt::format("label '{}' stands twice in sections", excerpt(name, 60)));
  }
  return true;
}

// As `ptxas` has it: a number below 0 is checked against its type, others only for .b8 and .b16;
// a -0 may stand in a list, or as .b64.
bool DebugReader::parse_section_numbers(Type type) {
  const std::uint32_t bits = info(type).bits;
  const std::uint32_t first = cursor_.offset();
  std::size_t count = 0;
  bool is_lone_zero = false;
  do {
    cursor_.skip();
    const std::uint32_t offset = cursor_.offset();
    const bool is_negative = cursor_.take('-');
    cursor_.skip();
    Constant constant;
    if (ConstantError error = read_literal(cursor_, constant)) {
      return fail(fmt::format("debug data: {}, {}", error, found()));
    }
    if (is_float(constant) || (is_negative && constant.kind == ImmediateKind::u64)) {
      return fail_at(offset, "debug data are integers, and those below 0 have no suffix U");
    }
    const std::uint64_t most = is_negative ? 1ULL << (bits - 1) : (1ULL << (bits % 64)) - 1;
    const bool is_checked = is_negative || bits < 32;
    if (is_checked && constant.bits > most) {
      return fail_at(offset, fmt::format("a number does not fit into .{}", info(type).text));
    }
    is_lone_zero = ++count == 1 && is_negative && constant.bits == 0 && bits < 64;
  } while (cursor_.take(','));
  return is_lone_zero ? fail_at(first, "-0 does not stand alone in debug data") : true;
}

bool DebugReader::parse_section_address(Type type) {
  const std::uint32_t offset = cursor_.offset();
  std::string_view name;
  const bool is_section = cursor_.is_next('.');
  if (!(is_section ? read_section_name(name) : read_debug_name(name))) return false;
  if (info(type).bits < 32) {
    return fail_at(offset, fmt::format("an address does not fit into .{}", info(type).text));
  }
  std::uint64_t ignored = 0;
  if (cursor_.take('+')) {
    cursor_.skip();
    if (is_warp_size(cursor_)) return fail("an offset in debug data is written in digits");
    return read_uint(max_number_of_file, "an offset", ignored);
  }
  if (is_section || !cursor_.take('-')) return true;
  cursor_.skip();
  return read_debug_name(name);
}

// A name without the words that `ptxas` keeps to itself.
bool DebugReader::read_debug_name(std::string_view& name) {
  const Cursor before = cursor_;
  name = cursor_.name();
  if (name.size() == 1 && (name == "%" || name == "$" || name == "_")) name = {};
  if (name == warp_size_name || name == "function_name" || name == "inlined_at") name = {};
  if (!name.empty()) return true;
  cursor_ = before;
  return fail("a name was expected, " + found());
}

// `.debug_info`: letters, digits, _ and $ behind a dot and a letter.
bool DebugReader::read_section_name(std::string_view& name) {
  const Cursor before = cursor_;
  name = word_after_dot();
  const char first = name.empty() ? '0' : name.front();
  const bool begins_well = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  if (begins_well && !is_word_of_ptx(name)) return true;
  cursor_ = before;
  return fail("a section has a name as '.debug_info', " + found());
}

}  // namespace demarc::ptx
