// Writes a diagnostic with its file, line, column and text.
#include "demarc/ptx/diagnostic.hpp"

#include <fmt/format.h>

namespace demarc::ptx {

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::malformed:
      return "malformed";
    case Severity::unsupported:
      return "unsupported";
    case Severity::approximated:
      return "approximated";
  }
  return "";
}

std::string format(const Diagnostic& diagnostic, std::string_view source_name) {
  return fmt::format("{}:{}:{}: {}: {}\n  {}", source_name, diagnostic.line, diagnostic.column,
                     name(diagnostic.severity), diagnostic.message, diagnostic.text);
}

}  // namespace demarc::ptx
