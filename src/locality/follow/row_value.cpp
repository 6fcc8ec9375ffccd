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
  switch (value.kind) {
    case Value::Kind::uniform:
      return truncated(value.base, bits);
    case Value::Kind::affine:
      return truncated(value.base + static_cast<std::uint64_t>(value.stride) * x, bits);
    case Value::Kind::window:
      return (x >= value.base && x < value.window_end()) != value.inverted ? 1 : 0;
    case Value::Kind::lanes:
      return vectors_[value.base][x];
    case Value::Kind::trips:
    case Value::Kind::varying:
    case Value::Kind::unknown:
      break;
  }
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
    if (changes < 3) {
      release();
      if (changes == 0) return uniform_value(first ? 1 : 0);
      if (changes == 1)
        return first ? Value{Value::Kind::window, false, row.begin, where[0]}
                     : Value{Value::Kind::window, false, where[0], row.end};
      return {Value::Kind::window, first, where[0], where[1]};
    }
    return {Value::Kind::lanes, false, index, 0};
  }
  const std::uint64_t first = lanes[row.begin];
  if (row.end - row.begin == 1) {
    release();
    return uniform_value(first);
  }
  const std::int64_t stride = sign_extended(lanes[row.begin + 1] - first, bits);
  for (std::uint32_t x = row.begin + 1; x < row.end; ++x)
    if (truncated(lanes[x] - lanes[x - 1], bits) !=
        truncated(static_cast<std::uint64_t>(stride), bits))
      return {Value::Kind::lanes, false, index, 0};
  release();
  return affine_value(first - static_cast<std::uint64_t>(stride) * row.begin,
                      static_cast<std::uint64_t>(stride), bits);
}

Value RowArithmetic::linear(const OperationShape& shape, const Value& a, const Value& b,
                            const Value& c, Row row, bool& done) {
  done = true;
  const unsigned bits = shape.bits;
  const auto stride_of = [](const Value& value) {
    return static_cast<std::uint64_t>(value.stride);
  };
  switch (shape.operation) {
    case Operation::copy:
      return a;
    case Operation::add:
      return affine_value(a.base + b.base, stride_of(a) + stride_of(b), bits);
    case Operation::subtract:
      return affine_value(a.base - b.base, stride_of(a) - stride_of(b), bits);
    case Operation::negate:
      return affine_value(0 - a.base, 0 - stride_of(a), bits);
    case Operation::bit_not:
      return affine_value(~a.base, 0 - stride_of(a), bits);
    case Operation::multiply:
    case Operation::multiply_add: {
      const Value& factor = a.kind == Value::Kind::uniform ? a : b;
      const Value& other = a.kind == Value::Kind::uniform ? b : a;
      if (factor.kind != Value::Kind::uniform) break;
      const bool adds = shape.operation == Operation::multiply_add;
      return affine_value(factor.base * other.base + (adds ? c.base : 0),
                          factor.base * stride_of(other) + (adds ? stride_of(c) : 0), bits);
    }
    case Operation::shift_left: {
      const std::uint64_t by = truncated(b.base, 32);
      if (b.kind != Value::Kind::uniform || by >= bits) break;
      return affine_value(a.base << by, stride_of(a) << by, bits);
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
      return affine_value(f * static_cast<std::uint64_t>(other.base) + (adds ? c.base : 0),
                          f * static_cast<std::uint64_t>(other.stride) + (adds ? stride_of(c) : 0),
                          shape.result_bits);
    }
    case Operation::convert: {
      if (shape.result_bits <= bits) return affine_value(a.base, stride_of(a), shape.result_bits);
      const auto x = exact(a, bits, shape.is_signed, row);
      if (!x) break;
      return affine_value(static_cast<std::uint64_t>(x->base),
                          static_cast<std::uint64_t>(x->stride), shape.result_bits);
    }
    default:
      break;
  }
  done = false;
  return {};
}

Value RowArithmetic::compare(const OperationShape& shape, const Value& a, const Value& b, Row row,
                             bool& done) {
  done = false;
  const auto x = exact(a, shape.bits, shape.is_signed, row);
  const auto y = exact(b, shape.bits, shape.is_signed, row);
  if (!x || !y) return {};
  // The difference d(x) = base + stride x.
  std::int64_t base = 0;
  std::int64_t stride = 0;
  if (__builtin_sub_overflow(x->base, y->base, &base) ||
      __builtin_sub_overflow(x->stride, y->stride, &stride) || stride == 0 || is_far(base) ||
      is_far(stride))
    return {};
  done = true;
  const Solution solution = solve(shape.operation, base, stride, row.begin, row.end);
  if (solution.low >= solution.high) return uniform_value(solution.inverted ? 1 : 0);
  if (solution.low == row.begin && solution.high == row.end)
    return uniform_value(solution.inverted ? 0 : 1);
  return {Value::Kind::window, solution.inverted, static_cast<std::uint64_t>(solution.low),
          solution.high};
}

Value RowArithmetic::combine_windows(Operation operation, const Value& a, const Value& b,
                                     bool& done) {
  done = true;
  // Windows and constants only.
  const auto simple = [](const Value& value) {
    return value.kind == Value::Kind::window || value.kind == Value::Kind::uniform;
  };
  if (operation == Operation::bit_not && a.kind == Value::Kind::window) {
    Value result = a;
    result.inverted = !result.inverted;
    return result;
  }
  if (simple(a) && simple(b) &&
      (operation == Operation::bit_and || operation == Operation::bit_or)) {
    const bool absorbing = operation == Operation::bit_or;
    for (const auto& [one, other] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
      if (one->kind != Value::Kind::uniform) continue;
      return ((one->base & 1U) != 0) == absorbing ? uniform_value(absorbing ? 1 : 0) : *other;
    }
    // Both windows. a or b = not (not a and not b).
    Value x = a;
    Value y = b;
    if (absorbing) {
      x.inverted = !x.inverted;
      y.inverted = !y.inverted;
    }
    if (!x.inverted && !y.inverted) {
      const std::uint64_t low = std::max(x.base, y.base);
      const std::uint32_t high = std::min(x.window_end(), y.window_end());
      if (low >= high) return uniform_value(absorbing ? 1 : 0);
      return {Value::Kind::window, absorbing, low, high};
    }
  }
  done = false;
  return {};
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
  if (shape.operation == Operation::poison || a.kind == Value::Kind::unknown ||
      b.kind == Value::Kind::unknown || c.kind == Value::Kind::unknown)
    return {};
  if (changes_with_trips(a) || changes_with_trips(b) || changes_with_trips(c))
    return evaluate_over_trips(shape, a, b, c, row);
  return evaluate_once(shape, a, b, c, row);
}

Value RowArithmetic::evaluate_once(const OperationShape& shape, const Value& a, const Value& b,
                                   const Value& c, Row row) {
  const bool comparison = is_comparison(shape.operation);
  if (a.kind == Value::Kind::uniform && b.kind == Value::Kind::uniform &&
      c.kind == Value::Kind::uniform)
    return uniform_value(truncated(
        scalar(shape, truncated(a.base, shape.bits), truncated(b.base, shape.bits), c.base),
        comparison ? 1 : shape.result_bits));
  if (shape.operation == Operation::select && c.kind == Value::Kind::uniform)
    return c.base != 0 ? a : b;
  bool done = false;
  Value result;
  if (shape.bits == 1) {
    result = combine_windows(shape.operation, a, b, done);
    if (done) return result;
  }
  if (is_linear(a) && is_linear(b) && is_linear(c)) {
    result = comparison ? compare(shape, a, b, row, done) : linear(shape, a, b, c, row, done);
    if (done) return result;
  }
  return lane_by_lane(shape, a, b, c, row);
}

}  // namespace demarc::locality
