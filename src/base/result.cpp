// Makes errors as values, and throws when a program takes the error of a value or the value of an
// error.
#include "demarc/base/result.hpp"

#include <stdexcept>

namespace demarc {

namespace detail {

void value_of_an_error(const Error& error) {
  throw std::logic_error("a value was taken of an error: " + error.message);
}

void error_of_a_value() {
  throw std::logic_error("an error was taken of a value");
}

}  // namespace detail

tl::unexpected<Error> failure(ErrorKind kind, fmt::string_view format, fmt::format_args arguments) {
  return tl::unexpected(Error{kind, fmt::vformat(format, arguments)});
}

}  // namespace demarc
