// One of the equal parts into which a card, or what it has, is divided.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::partition {

// The largest number of parts. More colours than that cannot be told apart.
inline constexpr std::uint32_t max_parts = 64;

struct Part {
  std::uint32_t index = 0;  // from 0 on
  std::uint32_t of = 1;
  friend bool operator==(const Part&, const Part&) = default;

  // The part's share of `count` things with the numbers first to end - 1; `of` divides `count`.
  [[nodiscard]] std::uint32_t first(std::uint32_t count) const { return count / of * index; }
  [[nodiscard]] std::uint32_t end(std::uint32_t count) const { return count / of * (index + 1); }
};

// "K/N", as users write it: the K-th of N parts, counted from 1 on, so that "1/2" is the first
// half. N is 2 to max_parts. The message of invalid_input says what was expected.
[[nodiscard]] Result<Part> parse_part(std::string_view text);
// "1/2"
[[nodiscard]] std::string to_string(const Part& part);
// Whether two parts of one thing overlap, cut into as many parts as it may be for each.
[[nodiscard]] bool overlap(const Part& a, const Part& b);

}  // namespace demarc::partition
