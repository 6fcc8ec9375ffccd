#include "demarc/base/result.hpp"

namespace demarc {

tl::unexpected<Error> failure(ErrorKind kind, fmt::string_view format, fmt::format_args arguments) {
  return tl::unexpected(Error{kind, fmt::vformat(format, arguments)});
}

}  // namespace demarc
