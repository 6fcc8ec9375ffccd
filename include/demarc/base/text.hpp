// Text that grows piece by piece. fmt's formatter is instantiated only in base: fmt::format_to,
// fmt::memory_buffer and fmt::join would each bring 60 KB of code to the unit that uses them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace demarc {

// Appends `format` with its arguments to `out`, as fmt::vformat_to writes it.
void append_formatted(std::string& out, fmt::string_view format, fmt::format_args arguments);

template <class... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  append_formatted(out, format, fmt::make_format_args(args...));
}

// The items as "{}" prints them, with `separator` between each two.
template <class Range>
[[nodiscard]] std::string joined(const Range& items, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    first = false;
    append(out, "{}", item);
  }
  return out;
}

// The last line that is not blank, without blanks at its end. Empty if there is none.
[[nodiscard]] std::string_view last_line(std::string_view text);

}  // namespace demarc
