// Evaluates integer operations on the values of a register over a row of threads.
#include "follow/row_value.hpp"

#include <algorithm>
#include <array>

#include "follow/exact_value.hpp"

namespace demarc::locality {
namespace {

std::uint64_t divided(std::uint64_t a, std::uint64_t b, bool is_signed, unsigned bits,
                      bool remainder) {
  if (is_signed) {
    const std::int64_t x = sign_extended(a, bits);
    const std::int64_t y = sign_extended(b, bits);
    if (y == 0) return remainder ? a : ~std::uint64_t{0};
    if (y == -1) return remainder ? 0 : std::uint64_t{0} - a;
    return static_cast<std::uint64_t>(remainder ? x % y : x / y);
  }
  if (b == 0) return remainder ? a : ~std::uint64_t{0};
  return remainder ? a % b : a / b;
}

std::uint64_t high_half(std::uint64_t a, std::uint64_t b, bool is_signed, unsigned bits) {
  __extension__ using Wide = unsigned __int128;  // the low bits of a product have no sign
  const auto wide = [&](std::uint64_t value) {
    return is_signed ? static_cast<Wide>(sign_extended(value, bits)) : Wide{value};
  };
  const Wide x = wide(a);
  const Wide y = wide(b);
  return static_cast<std::uint64_t>((x * y) >> bits);
}

bool holds(Operation operation, std::uint64_t a, std::uint64_t b, bool is_signed, unsigned bits) {
  const std::int64_t x = sign_extended(a, bits);
  const std::int64_t y = sign_extended(b, bits);
  switch (operation) {
    case Operation::equal:
      return a == b;
    case Operation::not_equal:
      return a != b;
    case Operation::less:
      return is_signed ? x < y : a < b;
    case Operation::less_equal:
      return is_signed ? x <= y : a <= b;
    case Operation::greater:
      return is_signed ? x > y : a > b;
    default:
      return is_signed ? x >= y : a >= b;
  }
}

std::uint64_t scalar(const OperationShape& shape, std::uint64_t a, std::uint64_t b,
                     std::uint64_t c) {
  const unsigned bits = shape.bits;
  const auto extended = [&](std::uint64_t value) {
    return shape.is_signed ? static_cast<std::uint64_t>(sign_extended(value, bits)) : value;
  };
  const bool a_less = holds(Operation::less, a, b, shape.is_signed, bits);
  switch (shape.operation) {
    case Operation::copy:
      return a;
    case Operation::add:
      return a + b;
    case Operation::subtract:
      return a - b;
    case Operation::multiply:
      return a * b;
    case Operation::multiply_high:
      return high_half(a, b, shape.is_signed, bits);
    case Operation::multiply_wide:
      return extended(a) * extended(b);
    case Operation::multiply_add:
      return a * b + c;
    case Operation::multiply_add_wide:
      return extended(a) * extended(b) + c;
    case Operation::shift_left:
      return (b & 0xffffffffU) >= bits ? 0 : a << (b & 0xffU);
    case Operation::shift_right: {
      const auto by = static_cast<unsigned>(std::min<std::uint64_t>(b & 0xffffffffU, bits));
      if (!shape.is_signed) return by >= bits ? 0 : a >> by;
      return static_cast<std::uint64_t>(sign_extended(a, bits) >> std::min(by, bits - 1));
    }
    case Operation::divide:
      return divided(a, b, shape.is_signed, bits, false);
    case Operation::remainder:
      return divided(a, b, shape.is_signed, bits, true);
    case Operation::bit_and:
      return a & b;
    case Operation::bit_or:
      return a | b;
    case Operation::bit_xor:
      return a ^ b;
    case Operation::bit_not:
      return ~a;
    case Operation::negate:
      return std::uint64_t{0} - a;
    case Operation::absolute:
      return sign_extended(a, bits) < 0 ? std::uint64_t{0} - a : a;
    case Operation::minimum:
      return a_less ? a : b;
    case Operation::maximum:
      return a_less ? b : a;
    case Operation::extract: {
      const auto at = static_cast<unsigned>(b & 0xffU);
      const auto length = static_cast<unsigned>(std::min<std::uint64_t>(c & 0xffU, bits));
      if (length == 0) return 0;
      const std::uint64_t shifted =
          shape.is_signed
              ? static_cast<std::uint64_t>(sign_extended(a, bits) >> std::min(at, bits - 1))
          : at >= bits ? 0
                       : a >> at;
      return shape.is_signed ? static_cast<std::uint64_t>(sign_extended(shifted, length))
                             : truncated(shifted, length);
    }
    case Operation::funnel_left:
    case Operation::funnel_right: {
      const std::uint64_t both = truncated(a, 32) | (b << 32U);
      const auto by = static_cast<unsigned>(c & 31U);
      return shape.operation == Operation::funnel_left ? (both << by) >> 32U : both >> by;
    }
    case Operation::convert:
      return extended(a);
    case Operation::select:
      return c != 0 ? a : b;
    case Operation::poison:
      return 0;
    default:
      return holds(shape.operation, a, b, shape.is_signed, bits) ? 1 : 0;
  }
}

}  // namespace

std::size_t RowArithmetic::new_vector() {
  if (used_ == vectors_.size()) vectors_.emplace_back(width_);
  return used_++;
}

std::uint64_t RowArithmetic::at(const Value& value, std::uint32_t x, unsigned bits) const {
  if (const auto* linear = std::get_if<Linear>(&value))
    return truncated(linear->base + static_cast<std::uint64_t>(linear->stride) * x, bits);
  if (const auto* window = std::get_if<Window>(&value))
    return (x >= window->begin && x < window->end) != window->inverted ? 1 : 0;
  if (const auto* lanes = std::get_if<Lanes>(&value)) return vectors_[lanes->vector][x];
  return 0;
}

Value RowArithmetic::simplified(std::size_t index, Row row, unsigned bits) {
  const std::vector<std::uint64_t>& lanes = vectors_[index];
  const auto release = [&] { used_ = index; };
  if (bits == 1) {
    // At most two changes: a window.
    std::uint32_t changes = 0;
    std::array<std::uint32_t, 3> where{};
    for (std::uint32_t x = row.begin + 1; x < row.end && changes < 3; ++x)
      if (lanes[x] != lanes[x - 1]) where[changes++] = x;
    const bool first = lanes[row.begin] != 0;
    if (changes == 3) return Lanes{index};
    release();
    if (changes == 0) return Linear{first ? 1U : 0U};
    if (changes == 2) return Window{where[0], where[1], first};
    return first ? Window{row.begin, where[0]} : Window{where[0], row.end};
  }
  const std::uint64_t first = lanes[row.begin];
  if (row.end - row.begin == 1) {
    release();
    return Linear{first};
  }
  const std::int64_t stride = sign_extended(lanes[row.begin + 1] - first, bits);
  for (std::uint32_t x = row.begin + 1; x < row.end; ++x)
    if (truncated(lanes[x] - lanes[x - 1], bits) !=
        truncated(static_cast<std::uint64_t>(stride), bits))
      return Lanes{index};
  release();
  return linear_value(first - static_cast<std::uint64_t>(stride) * row.begin,
                      static_cast<std::uint64_t>(stride), bits);
}

std::optional<Value> RowArithmetic::linear(const OperationShape& shape, const Linear& a,
                                           const Linear& b, const Linear& c, Row row) {
  const unsigned bits = shape.bits;
  const auto stride_of = [](const Linear& value) {
    return static_cast<std::uint64_t>(value.stride);
  };
  switch (shape.operation) {
    case Operation::copy:
      return a;
    case Operation::add:
      return linear_value(a.base + b.base, stride_of(a) + stride_of(b), bits);
    case Operation::subtract:
      return linear_value(a.base - b.base, stride_of(a) - stride_of(b), bits);
    case Operation::negate:
      return linear_value(0 - a.base, 0 - stride_of(a), bits);
    case Operation::bit_not:
      return linear_value(~a.base, 0 - stride_of(a), bits);
    case Operation::multiply:
    case Operation::multiply_add: {
      const Linear& factor = a.stride == 0 ? a : b;
      const Linear& other = a.stride == 0 ? b : a;
      if (factor.stride != 0) break;
      const bool adds = shape.operation == Operation::multiply_add;
      return linear_value(factor.base * other.base + (adds ? c.base : 0),
                          factor.base * stride_of(other) + (adds ? stride_of(c) : 0), bits);
    }
    case Operation::shift_left: {
      const std::uint64_t by = truncated(b.base, 32);
      if (b.stride != 0 || by >= bits) break;
      return linear_value(a.base << by, stride_of(a) << by, bits);
    }
    case Operation::multiply_wide:
    case Operation::multiply_add_wide: {
      const auto x = exact(a, bits, shape.is_signed, row);
      const auto y = exact(b, bits, shape.is_signed, row);
      if (!x || !y || (x->stride != 0 && y->stride != 0)) break;
      const Exact& factor = x->stride == 0 ? *x : *y;
      const Exact& other = x->stride == 0 ? *y : *x;
      const bool adds = shape.operation == Operation::multiply_add_wide;
      const auto f = static_cast<std::uint64_t>(factor.base);
      return linear_value(f * static_cast<std::uint64_t>(other.base) + (adds ? c.base : 0),
                          f * static_cast<std::uint64_t>(other.stride) + (adds ? stride_of(c) : 0),
                          shape.result_bits);
    }
    case Operation::convert: {
      if (shape.result_bits <= bits) return linear_value(a.base, stride_of(a), shape.result_bits);
      const auto x = exact(a, bits, shape.is_signed, row);
      if (!x) break;
      return linear_value(static_cast<std::uint64_t>(x->base),
                          static_cast<std::uint64_t>(x->stride), shape.result_bits);
    }
    default:
      break;
  }
  return std::nullopt;
}

std::optional<Value> RowArithmetic::compare(const OperationShape& shape, const Linear& a,
                                            const Linear& b, Row row) {
  const auto x = exact(a, shape.bits, shape.is_signed, row);
  const auto y = exact(b, shape.bits, shape.is_signed, row);
  if (!x || !y) return std::nullopt;
  // The difference d(x) = base + stride x.
  std::int64_t base = 0;
  std::int64_t stride = 0;
  if (__builtin_sub_overflow(x->base, y->base, &base) ||
      __builtin_sub_overflow(x->stride, y->stride, &stride) || stride == 0 || is_far(base) ||
      is_far(stride))
    return std::nullopt;
  const Solution solution = solve(shape.operation, base, stride, row.begin, row.end);
  if (solution.low >= solution.high) return Linear{solution.inverted ? 1U : 0U};
  if (solution.low == row.begin && solution.high == row.end)
    return Linear{solution.inverted ? 0U : 1U};
  return Window{static_cast<std::uint32_t>(solution.low), static_cast<std::uint32_t>(solution.high),
                solution.inverted};
}

std::optional<Value> RowArithmetic::combine_windows(Operation operation, const Value& a,
                                                    const Value& b) {
  const auto turned = [](Window window) {
    window.inverted = !window.inverted;
    return window;
  };
  const auto* one = std::get_if<Window>(&a);
  const auto* other = std::get_if<Window>(&b);
  if (operation == Operation::bit_not && one != nullptr) return turned(*one);
  const bool absorbing = operation == Operation::bit_or;
  if (!absorbing && operation != Operation::bit_and) return std::nullopt;
  const Linear* const a_constant = uniform(a);
  const Linear* const b_constant = uniform(b);
  if ((one == nullptr && a_constant == nullptr) || (other == nullptr && b_constant == nullptr))
    return std::nullopt;
  for (const auto& [constant, rest] : {std::pair{a_constant, &b}, std::pair{b_constant, &a}}) {
    if (constant == nullptr) continue;
    return ((constant->base & 1U) != 0) == absorbing ? Linear{absorbing ? 1U : 0U} : *rest;
  }
  // Both windows. a or b = not (not a and not b).
  const Window x = absorbing ? turned(*one) : *one;
  const Window y = absorbing ? turned(*other) : *other;
  if (x.inverted || y.inverted) return std::nullopt;
  const std::uint32_t low = std::max(x.begin, y.begin);
  const std::uint32_t high = std::min(x.end, y.end);
  if (low >= high) return Linear{absorbing ? 1U : 0U};
  return Window{low, high, absorbing};
}

Value RowArithmetic::lane_by_lane(const OperationShape& shape, const Value& a, const Value& b,
                                  const Value& c, Row row) {
  const unsigned bits = shape.bits;
  const unsigned result_bits = is_comparison(shape.operation) ? 1 : shape.result_bits;
  const bool wide_c = shape.operation == Operation::multiply_add_wide;
  return from_lanes(row, result_bits, [&](std::uint32_t x) {
    return truncated(scalar(shape, truncated(at(a, x, bits), bits), truncated(at(b, x, bits), bits),
                            at(c, x, wide_c ? result_bits : bits)),
                     result_bits);
  });
}

Value RowArithmetic::evaluate(const OperationShape& shape, const Value& a, const Value& b,
                              const Value& c, Row row) {
  if (shape.operation == Operation::poison || is<Unknown>(a) || is<Unknown>(b) || is<Unknown>(c))
    return Unknown{};
  if (changes_with_trips(a) || changes_with_trips(b) || changes_with_trips(c))
    return evaluate_over_trips(shape, a, b, c, row);
  return evaluate_once(shape, a, b, c, row);
}

Value RowArithmetic::evaluate_once(const OperationShape& shape, const Value& a, const Value& b,
                                   const Value& c, Row row) {
  const bool comparison = is_comparison(shape.operation);
  const auto* const x = std::get_if<Linear>(&a);
  const auto* const y = std::get_if<Linear>(&b);
  const auto* const z = std::get_if<Linear>(&c);
  const bool all_linear = x != nullptr && y != nullptr && z != nullptr;
  if (all_linear && x->stride == 0 && y->stride == 0 && z->stride == 0)
    return Linear{truncated(
        scalar(shape, truncated(x->base, shape.bits), truncated(y->base, shape.bits), z->base),
        comparison ? 1 : shape.result_bits)};
  if (shape.operation == Operation::select && uniform(c) != nullptr) return z->base != 0 ? a : b;
  if (shape.bits == 1)
    if (auto result = combine_windows(shape.operation, a, b)) return *result;
  if (all_linear)
    if (auto result = comparison ? compare(shape, *x, *y, row) : linear(shape, *x, *y, *z, row))
      return *result;
  return lane_by_lane(shape, a, b, c, row);
}

}  // namespace demarc::locality
