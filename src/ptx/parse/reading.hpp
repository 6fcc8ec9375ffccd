// What the readers of a module share, and their basic steps. Functions that read something return
// false after they have reported what is wrong; the caller that owns a statement then calls
// recover().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "demarc/ptx/forms.hpp"
#include "demarc/ptx/parser.hpp"
#include "parse/cursor.hpp"
#include "parse/name_table.hpp"
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

struct Reading {
  Reading(Module& read, std::string_view text, const ParseOptions& given)
      : module(read), options(given), cursor(text), reporter(text, given.max_diagnostics) {}

  Module& module;
  ParseOptions options;
  Cursor cursor;
  Reporter reporter;
  NameTable names;
  FormLimits form_limits;
  Body body;  // of the function being read; its storage is used again
  std::vector<PendingReference> pending;
  std::uint32_t module_register_count = 0;
};

class TextReader {
 public:
  explicit TextReader(Reading& reading)
      : module_(reading.module),
        cursor_(reading.cursor),
        reporter_(reading.reporter),
        names_(reading.names),
        form_limits_(reading.form_limits),
        body_(reading.body),
        pending_(reading.pending) {}

 protected:
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
  // A directive up to its semicolon, of which only the text is kept.
  bool read_verbatim(const char* start, std::string_view& text);
  [[nodiscard]] std::string_view text_since(const char* first) const;

  Module& module_;
  Cursor& cursor_;
  Reporter& reporter_;
  NameTable& names_;
  FormLimits& form_limits_;
  Body& body_;
  std::vector<PendingReference>& pending_;
};

}  // namespace demarc::ptx
