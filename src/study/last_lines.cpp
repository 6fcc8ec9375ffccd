// Cuts the last lines out of a program's output.
#include "last_lines.hpp"

namespace demarc::study {

std::string last_lines(std::string_view text) {
  constexpr std::size_t max_lines = 8;
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return "nothing";
  std::size_t begin = text.size();
  for (std::size_t lines = 0; lines < max_lines && begin != std::string_view::npos && begin > 0;
       ++lines) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin != std::string_view::npos && begin > 0) text.remove_prefix(begin + 1);
  std::string out;
  for (const char c : text) out += c == '\n' ? std::string(" | ") : std::string(1, c);
  return out;
}

}  // namespace demarc::study
