// What the front end says about a module. There are three answers. Malformed: the text is not PTX.
// Unsupported: it may be valid, but this program does not know it and keeps it verbatim.
// Approximated: it is understood, but not carried out as a card does it; the emulator gives this
// answer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace demarc::ptx {

enum class Severity : std::uint8_t { malformed, unsupported, approximated };

struct Diagnostic {
  Severity severity = Severity::malformed;
  std::uint32_t line = 0;    // line of the PTX text, from 1
  std::uint32_t column = 0;  // from 1
  std::string message;       // what was found and what would be right
  std::string text;          // the source line, cut if it is very long
};

[[nodiscard]] std::string_view name(Severity severity);

// "file:line:column: malformed: message" and, on a second line, the text.
[[nodiscard]] std::string format(const Diagnostic& diagnostic, std::string_view source_name);

struct Diagnostics {
  std::vector<Diagnostic> list;  // in order of the text; at most ParseOptions::max_diagnostics
  std::uint64_t malformed = 0;   // how many there were, listed or not
  std::uint64_t unsupported = 0;
  std::uint64_t approximated = 0;

  [[nodiscard]] bool ok() const { return malformed == 0; }
};

}  // namespace demarc::ptx
