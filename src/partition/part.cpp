// Reads and writes parts as users do: counted from 1 on.
#include "demarc/partition/part.hpp"

#include <fmt/format.h>

#include "demarc/base/numbers.hpp"

namespace demarc::partition {

Result<Part> parse_part(std::string_view text) {
  const std::size_t mark = text.find('/');
  const auto number = parse_u64(text.substr(0, mark), "part");
  const auto of = parse_u64(
      mark == std::string_view::npos ? std::string_view() : text.substr(mark + 1), "parts");
  if (!number || !of || *of < 2 || *of > max_parts || *number > *of) {
    return invalid_input(
        "'{}': K/N was expected, the K-th of N equal parts (2 to {}), such as 1/2 for the first "
        "half",
        text, max_parts);
  }
  if (*number == 0) {
    return invalid_input("'{}': parts are counted from 1 on, so the first of {} is 1/{}", text, *of,
                         *of);
  }
  return Part{static_cast<std::uint32_t>(*number - 1), static_cast<std::uint32_t>(*of)};
}

std::string to_string(const Part& part) {
  return fmt::format("{}/{}", part.index + 1, part.of);
}

bool overlap(const Part& a, const Part& b) {
  return std::uint64_t{a.index} * b.of < (std::uint64_t{b.index} + 1) * a.of &&
         std::uint64_t{b.index} * a.of < (std::uint64_t{a.index} + 1) * b.of;
}

}  // namespace demarc::partition
