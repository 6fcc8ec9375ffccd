// Appends text by fmt's formatter, which the library instantiates only here.
#include "demarc/base/text.hpp"

#include <iterator>

namespace demarc {

void append_formatted(std::string& out, fmt::string_view format, fmt::format_args arguments) {
  fmt::vformat_to(std::back_inserter(out), format, arguments);
}

std::string_view last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace demarc
