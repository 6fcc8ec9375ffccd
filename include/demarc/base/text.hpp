// Text that grows piece by piece, with fmt's formatter instantiated in base alone: fmt::format_to,
// fmt::memory_buffer and fmt::join each bring it to the unit that uses them, 60 KB of code.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace demarc {

// `format` with its arguments, as fmt::vformat_to writes it, at the end of `out`.
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

}  // namespace demarc
