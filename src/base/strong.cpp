// Throws when a program makes a number of a kind, or a raw number, from one that does not fit.
#include "demarc/base/strong.hpp"

#include <stdexcept>

namespace demarc::detail {

void does_not_fit(bool negative, std::uint64_t number, std::size_t bytes) {
  throw std::logic_error(fmt::format("{}{} does not fit a number of {} bytes", negative ? "-" : "",
                                     negative ? 0 - number : number, bytes));
}

}  // namespace demarc::detail
