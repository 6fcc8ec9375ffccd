// Whole-number expressions of launch files: "ceil_div(n, 256)", "4*(n+2)*pitch", "1 << (k-j)".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "demarc/base/result.hpp"

namespace demarc::gpu {

using Variables = std::map<std::string, std::int64_t>;

// Operators + - * / % << >> with C's precedence, unary minus, parentheses, decimal and hexadecimal
// numbers, variables, and the functions min, max, ceil_div, round_up(value, multiple), log2
// (rounded down), sqrt (rounded down). Overflow, division by zero and unknown names are errors that
// begin with `where`.
[[nodiscard]] Result<std::int64_t> evaluate(std::string_view text, const Variables& variables,
                                            std::string_view where);

}  // namespace demarc::gpu
