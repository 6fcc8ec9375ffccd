// Appends text by fmt's formatter, which the library instantiates only here.
#include "demarc/base/text.hpp"

#include <iterator>

namespace demarc {

void append_formatted(std::string& out, fmt::string_view format, fmt::format_args arguments) {
  fmt::vformat_to(std::back_inserter(out), format, arguments);
}

}  // namespace demarc
