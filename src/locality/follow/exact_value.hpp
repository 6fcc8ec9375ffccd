// Linear values as numbers that do not wrap around, and where comparisons of them hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "follow/row_value.hpp"

namespace demarc::locality {

inline bool is_comparison(Operation operation) {
  return operation >= Operation::equal && operation <= Operation::greater_equal;
}

inline Linear linear_value(std::uint64_t base, std::uint64_t stride, unsigned bits) {
  return {truncated(base, bits), sign_extended(stride, bits)};
}

// base + stride * x without wrapping around, as the type reads the bits.
struct Exact {
  std::int64_t base = 0;
  std::int64_t stride = 0;
};

[[nodiscard]] inline std::optional<Exact> exact(const Linear& value, unsigned bits, bool is_signed,
                                                Row row) {
  const auto read = [&](std::uint64_t bits_of) {
    return is_signed ? sign_extended(bits_of, bits)
                     : static_cast<std::int64_t>(truncated(bits_of, bits));
  };
  const std::int64_t first =
      read(value.base + static_cast<std::uint64_t>(value.stride) * row.begin);
  if (!is_signed && bits == 64 && first < 0) return std::nullopt;
  std::int64_t span = 0;
  std::int64_t last = 0;
  if (__builtin_mul_overflow(value.stride, static_cast<std::int64_t>(row.end - row.begin) - 1,
                             &span) ||
      __builtin_add_overflow(first, span, &last))
    return std::nullopt;
  if (bits < 64) {
    const std::int64_t low = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
    const std::int64_t high =
        is_signed ? (std::int64_t{1} << (bits - 1)) - 1 : (std::int64_t{1} << bits) - 1;
    if (last < low || last > high) return std::nullopt;
  } else if (!is_signed && last < 0) {
    return std::nullopt;
  }
  std::int64_t base = 0;  // that of thread 0, which the row may lack
  if (__builtin_mul_overflow(value.stride, static_cast<std::int64_t>(row.begin), &span) ||
      __builtin_sub_overflow(first, span, &base))
    return std::nullopt;
  return Exact{base, value.stride};
}

// So far from 0 that to turn it round or to go one further could overflow.
inline bool is_far(std::int64_t value) {
  constexpr std::int64_t most = std::int64_t{1} << 62U;
  return value > most || value < -most;
}

inline std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return q * b > a ? q - 1 : q;
}

// low <= i < high, or all others.
struct Solution {
  std::int64_t low = 0;
  std::int64_t high = 0;
  bool inverted = false;
};

// The i of begin .. end - 1 for which base + stride * i compares so with 0; stride is not 0, both
// are not far.
[[nodiscard]] inline Solution solve(Operation operation, std::int64_t base, std::int64_t stride,
                                    std::int64_t begin, std::int64_t end) {
  const auto within = [begin, end](std::int64_t low, std::int64_t high, bool inverted) {
    return Solution{std::clamp(low, begin, end), std::clamp(high, begin, end), inverted};
  };
  if (operation == Operation::equal || operation == Operation::not_equal) {
    const bool inverted = operation == Operation::not_equal;
    if (base % stride != 0) return within(begin, begin, inverted);
    return within(-base / stride, -base / stride + 1, inverted);
  }
  // All orders as e(i) < 0.
  if (operation == Operation::greater || operation == Operation::greater_equal) {
    base = -base;
    stride = -stride;
  }
  if (operation == Operation::less_equal || operation == Operation::greater_equal) --base;
  if (stride > 0) return within(begin, -floor_divided(base, stride), false);
  return within(floor_divided(base, -stride) + 1, end, false);
}

}  // namespace demarc::locality
