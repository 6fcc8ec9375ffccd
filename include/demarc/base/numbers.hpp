// Parses texts that are numbers as a whole. Trailing text and values out of range are errors that
// name what was read.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "demarc/base/result.hpp"

namespace demarc {

// `what` names the option, key or column in the error. Accepts decimal and 0x-prefixed hexadecimal.
[[nodiscard]] Result<std::uint64_t> parse_u64(std::string_view text, std::string_view what);
[[nodiscard]] Result<std::int64_t> parse_i64(std::string_view text, std::string_view what);
[[nodiscard]] Result<double> parse_double(std::string_view text, std::string_view what);

// "50%", "50 %" or "50": 50. Percentages are finite and not negative.
[[nodiscard]] Result<double> parse_percent(std::string_view text, std::string_view what);

// "16 GiB", "512MiB", "4M" (which is 4 MiB) or a number of bytes.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text, std::string_view what);

// "0-3,8,10-11" -> {0,1,2,3,8,10,11}; sorted, without repetitions. Values above `limit` are errors.
[[nodiscard]] Result<std::vector<std::uint32_t>> parse_index_list(std::string_view text,
                                                                  std::uint32_t limit,
                                                                  std::string_view what);

}  // namespace demarc
