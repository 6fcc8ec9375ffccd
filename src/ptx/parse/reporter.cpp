// Collects diagnostics, and finds the line and column of each.
#include "parse/reporter.hpp"

#include <algorithm>
#include <tuple>

namespace demarc::ptx {

std::string excerpt(std::string_view text, std::size_t most) {
  std::string out;
  for (const char c : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? ' ' : (byte > 0x7F ? '?' : c);
  }
  if (text.size() > most) out += "...";
  return out;
}

void Reporter::report(Severity severity, std::uint32_t offset, std::string message) {
  if (muted_) return;
  switch (severity) {
    case Severity::malformed:
      ++diagnostics_.malformed;
      break;
    case Severity::unsupported:
      ++diagnostics_.unsupported;
      break;
    case Severity::approximated:
      ++diagnostics_.approximated;
      break;
  }
  if (diagnostics_.list.size() >= most_) return;
  if (line_starts_.empty()) {
    line_starts_.push_back(0);
    for (std::size_t at = text_.find('\n'); at != std::string_view::npos;
         at = text_.find('\n', at + 1)) {
      line_starts_.push_back(static_cast<std::uint32_t>(at + 1));
    }
  }
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::uint32_t>(next - line_starts_.begin());
  const std::uint32_t start = line_starts_[line - 1];
  std::string_view words =
      text_.substr(start, std::min(text_.find('\n', start), text_.size()) - start);
  words.remove_prefix(std::min(words.find_first_not_of(" \t\r"), words.size()));
  while (!words.empty() && (words.back() == ' ' || words.back() == '\t' || words.back() == '\r')) {
    words.remove_suffix(1);
  }
  diagnostics_.list.push_back(
      {severity, line, offset - start + 1, std::move(message), excerpt(words)});
}

Diagnostics Reporter::take() {
  std::stable_sort(diagnostics_.list.begin(), diagnostics_.list.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     return std::tie(a.line, a.column) < std::tie(b.line, b.column);
                   });
  return std::move(diagnostics_);
}

}  // namespace demarc::ptx
